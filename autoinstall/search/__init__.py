"""Web search and pages for model agents; what comes back is data from strangers, bounded and marked as such."""
