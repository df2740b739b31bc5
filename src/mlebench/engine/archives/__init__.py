"""Archives: reads zip as a tree, unpacks tar and 7z, checks each member first, and writes our own archives."""
