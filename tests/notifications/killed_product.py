"""A product that sends by real processes, to be killed: `killed_product.py STATE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from mimikit.clock import SystemClock
from mimikit.notifications.courier import ProcessCourier
from mimikit.notify_settings import ChannelSettings, NotifySettings
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from tests.support.mind import Mind
from tests.support.product import Product, scripted_settings

APART_S = 1.5


def main() -> None:
    files = Files(RealDisk(Path(sys.argv[1])))
    files.make_folders()
    channels = {"phone": ChannelSettings(url_file="notify-phone.url")}
    notify = NotifySettings(channels=channels, apart_s=APART_S, per_hour=1000)
    settings = scripted_settings().model_copy(update={"notify": notify})
    product = Product(files, cast("Any", SystemClock()), Mind([]), settings=settings)
    bell = product.store.events.bell
    scheduler = cast("Any", product.supervisor.notifications)
    scheduler._courier = ProcessCourier(files, bell.ring)
    product.start()
    while True:
        if not product._pass():
            bell.wait(0.1)


if __name__ == "__main__":
    main()
