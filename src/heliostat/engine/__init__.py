"""The flows: up, down, run, push. They know ports only, never a ground or Ray itself."""
