"""What `threeloops classroom` does besides a set's way from release to marks.

decisions   what a teacher decides about one student's set
hub         a class on a hub
"""
