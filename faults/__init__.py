"""Faults on purpose: kills, failing disks, damaged files, bad inputs, and checks that nothing was lost by them.

python -m faults.campaign            about five minutes on two cores
python -m faults.campaign --long     half an hour
"""
