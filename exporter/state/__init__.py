"""What a GPU is doing, in one word: rules over the honest numbers, the hardware's limits and the host."""
