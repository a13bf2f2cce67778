"""The interview room: questions against a clock, attempts that are kept, and repeats at the right time.

question    one question as it is asked: text, hints, judge, working; the same for the terminal and the widget
choices     a drill as a choice among computed answers, or as a mistake of a colleague to name
bands       a drill with the numbers that interviewers ask (band_draws, band_training), judged as mental arithmetic is
spot        a worked answer with one wrong line (spots, spot_roofline, spot_inner, spot_training, spot_product, spot_costs, spot_driving)
table       several figures about one thing, cell by cell (tables)
traces      a timeline with an illness: which loop, which cause, which fix
scenarios   a symptom: which loop, cause, first look, fix (scenario_table)
flash       numbers to have by heart, from the catalogue and the formulas (flash_numbers)
chain       follow-ups on one thing, with a decision at the end (chains, chains_memory, chains_time, chains_gains)
letters     answers that are letters, in columns
examples    how an answer is written, in figures that are nobody's answer
idea        what is counted
ideas       everything that can be asked, and in which kinds
clock       an honest stopwatch, for one question
history     attempts in one SQLite file, safe against a killed process and two windows
schedule    when an idea is due again: FSRS over days, a short ladder within a session
plan        which questions a mode asks: warm-up, sprint, mock, weak, today
session     one sitting, whichever door it is held in
progress    what the attempts say
terminal    the light door
"""
