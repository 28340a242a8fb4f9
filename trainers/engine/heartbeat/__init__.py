"""What each rank does and whether it moves, and who says so when one hangs.

Standard library only, so that a script of your own can take this folder.
"""

from engine.heartbeat.heart import HEART as HEART
from engine.heartbeat.watch import HUNG as HUNG
