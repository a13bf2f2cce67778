"""Sensor chain: what a car senses with, and the stages from there to the brake.

>>> print(sensor_chain(title="From light to brake", caption="A sketch.").alt[:56])
From light to brake. Sensors: 6 cameras, LiDAR, radar, w
"""

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

SENSORS = ("6 cameras\nrays of light", "LiDAR\npoints in space", "radar\nranges, speeds", "wheels, gyro\nown motion")
STAGES = (
    "backbone\nfeatures\nof each image",
    "lift\nto the bird's-\neye grid",
    "heads\nboxes, road",
    "tracker\nboxes with\nvelocities",
    "prediction\nthe next\nseconds",
    "planner\na path",
)
WIDTH, HEIGHT, GAP, TOP = 92, 62, 14, 112


def sensor_chain(*, title: str, caption: str) -> Figure:
    """Sensors above, stages below, the actuators at the end; each sensor points at the stage that reads it."""
    step = WIDTH + GAP
    plan = [
        Box(x=place * (130 + GAP), y=0, width=130, height=44, kind="memory", text=text)
        for place, text in enumerate(SENSORS)
    ]
    plan += [
        Box(x=place * step, y=TOP, width=WIDTH, height=HEIGHT, kind="compute", text=text)
        for place, text in enumerate(STAGES)
    ]
    plan.append(
        Box(x=5 * step, y=TOP + HEIGHT + 34, width=WIDTH, height=34, kind="control", text="steer, brake")
    )  # fmt: skip
    arrows = [
        Arrow(x=place * step + WIDTH, y=TOP + HEIGHT / 2, to_x=(place + 1) * step - 2, to_y=TOP + HEIGHT / 2)
        for place in range(len(STAGES) - 1)
    ]
    for sensor, stage in ((0, 0), (1, 2), (2, 3), (3, 3)):
        arrows.append(
            Arrow(x=sensor * (130 + GAP) + 65, y=44, to_x=stage * step + WIDTH / 2 + 10 * (sensor - 2), to_y=TOP - 3)
        )
    arrows.append(
        Arrow(x=5 * step + WIDTH / 2, y=TOP + HEIGHT, to_x=5 * step + WIDTH / 2, to_y=TOP + HEIGHT + 31)
    )  # fmt: skip
    names = ", ".join(text.split("\n")[0] for text in SENSORS)
    stages = ", ".join(text.split("\n")[0] for text in STAGES)
    alt = f"{title}. Sensors: {names}. Stages, one after the other: {stages}; then steering and brakes."
    return boxes(plan, title=title, caption=caption, alt=alt, arrows=arrows)
