"""Where helio itself runs beside the cluster: a notebook's container."""
