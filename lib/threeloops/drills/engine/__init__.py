"""What every drill shares. Read the modules in this order.

answers         what a learner typed, as a number in base SI (spelling, shorthand: brought to the form that it reads;
                exactness: how exact it has to be)
drill           what a drill is: draw, prompt, answer, independent count, slips, derivation
judge           right, or which slip, or how far off (unit_slips: mistakes that belong to no idea)
student_draws   whose numbers a question is asked with
functions       functions that a learner writes (function_bank: the drills that ask for one; calls: calling it at home;
                code_task: small tasks in code, whose slips are the solution with one thing changed; kernel_task,
                schedule_task: those that run on a machine of benches)
bank            every drill, by key and by family
sheet, prediction       drills and predictions in a notebook (ask_first: nothing is shown before there is one)
fair_draws      draws that can be asked: slips and answer can be told apart; answers_in_text: nor is it in the question;
                trial: one drill, tried a thousand times
catalogued, phrasing, searches      for whoever writes a drill: real models and parts, numbers in words; the number
                up to which something holds, a draw that is wanted
"""
