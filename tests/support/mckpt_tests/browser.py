"""A headless Chromium that opens pages from the disk, as scripts/page_pictures and a test use it: without a network, over a
pipe, with nothing but the standard library.

    with Browser.find() as browser:
        browser.open("page.html", width=390, height=800, dark=True)
        browser.run("document.title")           what the expression gives
        browser.click(100, 50), browser.press("Escape")
        browser.errors                          what the page's scripts complained about
        png = browser.picture("#map")           an element, or what fits the window
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Browser:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="mckpt_browser_", ignore_cleanup_errors=True)  # its helpers may still write
        to_read, self.to = os.pipe()
        self.answers, to_write = os.pipe()
        # Chromium takes commands on descriptor 3 and answers on 4.
        def give():
            spare = os.dup(to_write)  # to_write may be 3, to_read may be 4
            os.dup2(to_read, 3), os.dup2(spare, 4)
            os.set_inheritable(3, True), os.set_inheritable(4, True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder.name, "about:blank"], preexec_fn=give, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(to_write)
        self.rest, self.number, self.session, self.errors, self.requests, self.seen = b"", 0, None, [], [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    @staticmethod
    def find():
        """The first browser that is installed, or None."""
        program = next((p for p in map(shutil.which, NAMES) if p), None)
        return Browser(program) if program else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)
        self.process.terminate()
        self.process.wait(30)
        os.close(self.answers)
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, values = event["method"], event.get("params", {})
        self.seen.append(method)
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def call(self, method, **values):
        self.number += 1
        command = {"id": self.number, "method": method, "params": values}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.note(answer)

    def open(self, path, width=1280, height=800, dark=False, scale=1):
        self.errors, self.requests, self.seen = [], [], []
        self.window = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **self.window)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.seen:
            answer = self.message()
            if "method" in answer:
                self.note(answer)

    def run(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "") + " in " + expression)
        return answer["result"].get("value")

    def click(self, x, y):
        """As a mouse does, at a place of the window."""
        for what in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=what, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        """A key such as "Escape" goes to what has the focus."""
        code = {"Escape": 27, "Enter": 13, "Tab": 9}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for what in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=what, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def picture(self, element=None, margin=0, most_height=None, quick=False):
        """A PNG of an element of the page, or of the whole page from its top. `quick`: larger, sooner made and read."""
        tall = min(self.run("document.documentElement.scrollHeight"), 12_000)  # what is outside of the window is not painted
        self.call("Emulation.setDeviceMetricsOverride", **{**self.window, "height": max(self.window["height"], tall)})
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
        box = self.run(f"(() => {{ const r = document.querySelector({json.dumps(element or 'body')}).getBoundingClientRect();"
                       " return [r.left + scrollX, r.top + scrollY, r.width, r.height]; })()")
        x, y, width, height = box[0] - margin, box[1] - margin, box[2] + 2 * margin, box[3] + 2 * margin
        clip = {"x": max(x, 0), "y": max(y, 0), "width": width, "height": min(height, most_height or height), "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip, optimizeForSpeed=quick, captureBeyondViewport=False)["data"])
