"""What one verb prints on a terminal, a file per verb; views that verbs share are in `report/render/terminal.py`."""
