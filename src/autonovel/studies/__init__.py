"""Many runs of one recipe: over seeds, with settings changed, of other systems, of a benchmark's parts."""
