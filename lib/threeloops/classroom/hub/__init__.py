"""A hub for a class: JupyterHub and nbgrader on one machine, written as a folder of configuration by `threeloops
classroom init`. The files themselves lie in templates/hub. Read the modules in this order.

people     who teaches, who learns: ids that are accounts
reach      whether the students' accounts can run this Python and read this book
folder     the folder, written
proxy      the proxy that the hub starts
exchange   whose a hand-in is
marking    one command for the teacher: collect, grade, hand back
"""
