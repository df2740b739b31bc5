"""Plans the contents of a folder, then writes and places everything."""
