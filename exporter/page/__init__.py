"""The page on the node and the JSON document behind it. Everything comes from memory."""
