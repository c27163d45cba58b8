"""Reports on results: statistics per problem, scores over problems, tables and pictures."""
