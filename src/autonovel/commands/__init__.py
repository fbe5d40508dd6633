"""What the commands do once they are parsed, one file for each or for a few that belong together."""
