"""Every error to spot."""

from threeloops.room.kinds.spots import costs, driving, inner, product, roofline, training
from threeloops.room.kinds.spots.spot import idea

WORKED = (*roofline.WORKED, *inner.WORKED, *training.WORKED, *product.WORKED, *costs.WORKED, *driving.WORKED)
IDEAS = tuple(idea(worked) for worked in WORKED)
