"""Kinds of question: presentations of a drill, and what is asked beside drills.

choices     a drill as a choice among computed answers, or as a mistake of a colleague to name
bands       a drill with the numbers that interviewers ask (band_draws, and band_training, band_serving,
            band_driving), judged as mental arithmetic is
spots       a worked answer with one wrong line
chains      follow-ups on one thing, with a decision at the end
table       several figures about one thing, cell by cell (tables)
cases       open cases: what to ask, estimates, a design to say and mark, a choice, follow-ups
traces      a timeline with an illness: which loop, which cause, which fix
scenarios   a symptom: which loop, cause, first look, fix (scenario_table; scenario_near: what it could be taken for)
code        a small function to write, finish or mend, under the clock
flash       numbers to have by heart, from the catalogue and the formulas (flash_numbers)
"""
