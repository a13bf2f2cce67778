"""Road rules: tables of distances and times as standards print them, to hold formulas against. All of them were opened
and read on 22 November 2026.

>>> STOPPING_SIGHT_FEET[60], TIME_GAPS[60]
(570, (1.6, 26.7))
"""

# Highway Engineering Handbook (Brockenbrough), table 2.2: AASHTO's stopping sight distance
STOPPING_SIGHT_REACTION_S, STOPPING_SIGHT_FEET_PER_S2 = 2.5, 11.2  # what the table says that it was computed with
# Design speed in miles per hour -> feet, rounded up to the next five. The page that was read ends in the middle of
# the column.
STOPPING_SIGHT_FEET = {
    20: 115, 21: 120, 22: 130, 23: 140, 24: 145, 25: 155, 26: 165, 27: 170, 28: 180, 29: 190,
    30: 200, 31: 210, 32: 220, 33: 230, 34: 240, 35: 250, 36: 260, 37: 270, 38: 280, 39: 290,
    46: 375, 47: 385, 48: 400, 49: 415, 50: 425, 51: 440, 52: 455, 53: 465, 54: 480, 55: 495,
    56: 510, 57: 525, 58: 540, 59: 555, 60: 570, 61: 585, 62: 600, 63: 615, 64: 630, 65: 645,
}  # fmt: skip

# UN Regulation No. 157 (automated lane keeping), paragraph 5.2.3.3, cars: minimum time gaps
# km/h -> (minimum time gap in seconds, minimum following distance in metres)
TIME_GAPS = {
    7.2: (1.0, 2.0), 10: (1.1, 3.1), 20: (1.2, 6.7), 30: (1.3, 10.8), 40: (1.4, 15.6), 50: (1.5, 20.8), 60: (1.6, 26.7),
}  # fmt: skip

CUT_IN = "Kraftfahrt-Bundesamt, Test Scenarios: cut-in, after Regulation (EU) 2022/1426, Annex III, and AFGBV"
CUT_IN_REACTION_S, CUT_IN_DECELERATION_M_PER_S2 = 0.25, 6.0  # the straight line on which the six values lie
# Closing speed in km/h -> time to collision in seconds from which a collision must be avoided (nobody stands inside)
CUT_IN_TTC_S = {10: 0.48, 20: 0.71, 30: 0.94, 40: 1.18, 50: 1.41, 60: 1.64}
