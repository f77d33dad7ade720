"""The `ixion` command: one module per verb, each a plain function behind a thin typer command."""
