"""What the hardware can do at best, and how near to it a measurement is."""
