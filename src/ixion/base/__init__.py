"""What every other room needs: errors, dtypes, dims, targets, options, source spans."""
