"""Trainings that one worker serves: coordinators of steps, and the centre of elastic averaging."""
