"""How many attention heads does a task need?"""
