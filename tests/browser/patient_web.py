"""The page's server, as `mimikit` starts it, but it waits for what comes of a command.

After its usual two seconds it tells that the command will take effect, and no more. And code has
its colours, also where they take longer than a tenth of a second.
"""

from mimikit.__main__ import main
from mimikit.tasks import queue
from mimikit.web import markdown

queue.COMMAND_WAIT_S = 45.0  # less than a test's own requests wait
markdown._HIGHLIGHT_S = 45.0

if __name__ == "__main__":
    main()
