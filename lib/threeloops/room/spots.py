"""Every error to spot."""

from threeloops.room import spot_costs, spot_driving, spot_inner, spot_product, spot_roofline, spot_training
from threeloops.room.spot import idea

WORKED = (*spot_roofline.WORKED, *spot_inner.WORKED, *spot_training.WORKED, *spot_product.WORKED, *spot_costs.WORKED, *spot_driving.WORKED)
IDEAS = tuple(idea(worked) for worked in WORKED)
