"""The door of the station: who is let in, what each role may do, and what no request gets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from chaffinch.errors import ConfigError
from chaffinch.web.pages.access import PROXY_SECRET, Door, Proxy
from chaffinch.web.pages.render import static_files
from chaffinch.web.pages.section import review_sections
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.marks import Mark
from chaffinch.web.review.project import Project
from chaffinch.web.review.store import trail, users
from chaffinch.web.review.store.users import add_user, begin_session, find_session
from chaffinch.web.settings import ServerSettings
from tests.web.review.test_work import NAME, confirm
from tests.web.review.world import CANARY, PASSWORD, Visitor, make_project, note, served, task_of, user

PAGES = (
    "/",
    "/agreement",
    "/audit",
    "/audit.jsonl",
    "/guideline",
    "/tasks",
    "/notes/1",
    "/notes/1/others/2",
    "/cases/1",
    "/nothing",
)


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Iterator[Project]:
    made = make_project(tmp_path, [note(0), note(1)], url=database_url)
    yield made
    made.close()


def test_without_a_session_nothing_is_shown_or_done(project: Project) -> None:
    with served(project) as base:
        stranger = Visitor(base)
        for path in PAGES:
            answer = stranger.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/login"), path
        for path in ("/review/tasks/1", "/review/cases/1/settle"):
            answer = stranger.get(path)
            assert answer.status_code in (401, 405)
            assert CANARY not in answer.text
        answer = stranger.post("/review/tasks/1/edits", {"edits": []})
        assert (answer.status_code, answer.json()["code"]) == (401, "no_session")
        stranger.client.cookies.set("chaffinch", "made-up")
        assert stranger.get("/").status_code == 303


def test_a_link_works_once(project: Project) -> None:
    from chaffinch.web.pages.access import Links

    links = Links()
    token = links.make(user(project, "sue"))
    assert links.take(token + "x") is None
    found = links.take(token)
    assert found is not None
    assert found.name == "sue"
    assert links.take(token) is None


def test_the_cookie_is_strict_and_new_at_every_login(project: Project) -> None:
    with served(project) as base:
        ann = Visitor(base)
        ann.client.cookies.set("chaffinch", "chosen-by-an-attacker")
        answer = ann.log_in("ann")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "chosen-by-an-attacker" not in cookie
        again = Visitor(base).log_in("ann")
        assert again.headers["set-cookie"] != cookie
        ann.submit("/logout")
        assert ann.get("/").headers["location"] == "/login"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_other_hosts_and_sites_are_refused(project: Project, headers: dict[str, str], status: int) -> None:
    with served(project) as base:
        ann = Visitor(base)
        ann.log_in("ann")
        assert ann.get("/", **headers).status_code == status
        form = {"name": "ann", "password": PASSWORD}
        assert httpx.post(f"{base}/login", data=form, headers=headers).status_code == status


def test_every_change_needs_the_csrf_token(project: Project) -> None:
    with served(project) as base:
        ann, sue = Visitor(base), Visitor(base)
        ann.log_in("ann")
        sue.log_in("sue")
        task = task_of(project, "ann", 1)
        right = ann.csrf
        for wrong in ("", "x", sue.csrf):
            ann.csrf = wrong
            for name in ("edits", "done", "reopen", "identical", "apply", "preview"):
                answer = ann.post(f"/review/tasks/{task}/{name}", {"edits": []})
                assert (answer.status_code, answer.json()["code"]) == (403, "no_csrf")
            assert ann.submit("/logout").status_code == 403
        ann.csrf = right
        assert ann.post(f"/review/tasks/{task}/edits", {"edits": []}).status_code == 200
        for path in ("/users", "/assign", "/release", "/logout"):
            sue.csrf = "x"
            assert sue.submit(path, name="eve").status_code == 403


def test_every_route_that_changes_something_asks_for_the_token_and_the_session(project: Project) -> None:
    """No route is named here: one that is added without a check fails as well."""
    settings = ServerSettings()
    sections = review_sections(Door(Desk(project)), settings)
    routes = [route for section in sections for route in section.routes if isinstance(route, Route)]
    posts = [route.path for route in routes if route.methods is not None and "POST" in route.methods]
    assert len(posts) >= 14
    with served(project) as base:
        visitors = [Visitor(base) for _ in range(4)]
        for visitor, name in zip(visitors, ("ann", "cay", "sue", "otto"), strict=True):
            visitor.log_in(name)
        count = audit_length(project)
        for path in posts:
            filled = path.replace("{number:int}", "1")
            for visitor in visitors:
                for wrong in ("", "x"):
                    message = visitor.post(filled, {}, **{"x-chaffinch-csrf": wrong})
                    form = visitor.client.post(base + filled, data={"csrf": wrong, "name": "eve", "password": PASSWORD})
                    statuses = (message.status_code, form.status_code)
                    assert path == "/login" or set(statuses) <= {403, 415}, (path, statuses)
            stranger = Visitor(base)
            assert stranger.post(filled, {}).status_code in (303, 401, 415), path
            assert stranger.client.get(base + filled).status_code in (200, 303, 401, 405), path
        failed = sum(row.action == "login failed" for row in audit_lines(project)[count:])
        assert failed == audit_length(project) - count, "something changed"


def audit_lines(project: Project) -> list[trail.TrailLine]:
    """Return the entries of the audit trail."""
    with project.database.read() as connection:
        return list(trail.lines(connection))


def audit_length(project: Project) -> int:
    """Return how many entries the audit trail has."""
    return len(audit_lines(project))


def test_roles_are_not_more_than_they_are(project: Project) -> None:
    forbidden = {
        "ann": ["/audit", "/audit.jsonl", "/agreement", "/cases/1", f"/notes/{task_of(project, 'bob', 1)}"],
        "cay": ["/audit", "/audit.jsonl", "/notes/1", "/cases/1"],
        "sue": ["/notes/1", "/cases/1"],
        "otto": ["/notes/1", "/cases/1"],
    }
    with served(project) as base:
        for name, paths in forbidden.items():
            visitor = Visitor(base)
            visitor.log_in(name)
            for path in paths:
                answer = visitor.get(path)
                assert answer.status_code == 403, (name, path)
                assert CANARY not in answer.text
            if name != "sue":
                for path in ("/users", "/assign", "/release"):
                    fields = {"name": "eve", "role": "steward", "password": PASSWORD}
                    assert visitor.submit(path, **fields).status_code == 403, (name, path)
    with project.database.read() as connection:
        assert users.find_user(connection, "eve") is None


def test_a_reader_never_gets_the_other_readers_decisions(project: Project) -> None:
    desk = Desk(project)
    mark = Mark(NAME.start, NAME.end, "FAMILY")
    confirm(desk, "ann", 1, mark)
    with served(project) as base:
        bob = Visitor(base)
        bob.log_in("bob")
        task, other = task_of(project, "bob", 1), task_of(project, "ann", 1)
        page, message = bob.get(f"/notes/{task}").text, bob.get(f"/review/tasks/{task}").json()
        assert [row[2] for row in message["marks"]] == ["DOCTOR", "PATIENT", "DATE"]
        assert "ann" not in page.replace("scanned", "")
        for name in ("edits", "done", "reopen", "identical", "apply", "preview"):
            assert bob.post(f"/review/tasks/{other}/{name}", {"edits": [], "start": 0, "end": 3}).status_code in (
                403,
                409,
            )
        assert bob.get(f"/review/tasks/{other}").status_code == 403
        assert bob.get(f"/review/tasks/{other + 1000}").status_code == 403, "whether it exists is not told"


@pytest.mark.parametrize(
    "path",
    [
        "/static/x/../../pages/access.py", "/static/x/%2e%2e/%2e%2e/app.py", "/static/x/..%2f..%2fapp.py",
        "/static/x//etc/passwd", "/static/../project.toml", "/project.toml", "/review.sqlite",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_static_files(project: Project, path: str) -> None:
    with served(project) as base:
        ann = Visitor(base)
        ann.log_in("ann")
        answer = ann.client.get(httpx.URL(base).copy_with(raw_path=path.encode()))
        assert answer.status_code == 404


def test_pages_load_nothing_from_elsewhere_and_no_inline_script(project: Project) -> None:
    import hashlib
    import json

    with served(project) as base:
        ann = Visitor(base)
        ann.log_in("ann")
        for path in ("/", "/guideline", f"/notes/{task_of(project, 'ann', 1)}", "/login"):
            answer = ann.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert answer.headers["cache-control"] == "no-store"
            for start in answer.text.split("<script")[1:]:
                attributes = start.split(">")[0]
                assert 'src="/static/' in attributes or 'type="application/json"' in attributes
            assert "://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
            assert "style=" not in answer.text
            assert " on" + "click" not in answer.text
    files = static_files()
    pinned = json.loads(files["manifest.json"])
    assert {name for name in files if ".min." in name} == set(pinned)
    for name, row in pinned.items():
        assert hashlib.sha256(files[name]).hexdigest() == row["sha256"]


def test_failed_logins_are_limited_by_name_and_words_are_the_same(project: Project) -> None:
    with served(project) as base:
        stranger = Visitor(base)
        texts = set()
        for name in ("ann", "nobody-of-that-name"):
            for _ in range(users.MOST_FAILURES):
                answer = stranger.log_in(name, "wrong password")
                assert answer.status_code == 403
                texts.add(answer.text)
            assert stranger.log_in(name, PASSWORD).status_code == 429
        assert len(texts) == 1
        assert stranger.log_in("bob").status_code == 303, "others are not locked out"


def test_an_idle_session_is_locked_until_the_password_is_given(tmp_path: Path) -> None:
    now = [1000.0]
    project = make_project(tmp_path, [note(0)], idle_minutes=10)
    object.__setattr__(project.database, "clock", lambda: now[0])
    ann = user(project, "ann")
    cookie = begin_session(project.database, ann, "password")
    now[0] += 590
    session = find_session(project.database, cookie, idle_seconds=600, touch=True)
    assert session is not None
    assert not session.idle
    now[0] += 599
    assert not getattr(find_session(project.database, cookie, idle_seconds=600, touch=False), "idle", True)
    now[0] += 2
    session = find_session(project.database, cookie, idle_seconds=600, touch=True)
    assert session is not None
    assert session.idle
    assert not users.unlock_session(project.database, session, "wrong password")
    assert users.unlock_session(project.database, session, PASSWORD)
    assert not getattr(find_session(project.database, cookie, idle_seconds=600, touch=True), "idle", True)
    now[0] += users.LONGEST_SESSION
    assert find_session(project.database, cookie, idle_seconds=1e9, touch=True) is None
    project.close()


def test_the_proxys_header_counts_only_with_its_secret_and_only_if_asked(project: Project) -> None:
    secret = "s" * 40
    name = {"x-remote-user": "sue"}
    with served(project) as base:
        assert httpx.get(f"{base}/", headers={**name, PROXY_SECRET: secret}).status_code == 303, "off by default"
    with served(project, proxy=Proxy("X-Remote-User", secret)) as base:
        assert httpx.get(f"{base}/", headers={**name, PROXY_SECRET: secret}).status_code == 200
        for headers in (name, {**name, PROXY_SECRET: "x" * 40}, {"x-remote-user": "eve", PROXY_SECRET: secret}):
            assert httpx.get(f"{base}/", headers=headers).status_code == 303
        assert httpx.post(f"{base}/login", data={"name": "ann", "password": PASSWORD}).status_code == 403
    with pytest.raises(ConfigError, match="under 32"):
        Proxy("X-Remote-User", "short")


def test_passwords_are_long_and_stored_as_argon2(project: Project) -> None:
    with pytest.raises(ConfigError, match="12 to 1000"), project.database.change("sue") as change:
        add_user(change, "eve", "reader", password="short")
    from sqlalchemy import select

    from chaffinch.web.review.store import schema

    with project.database.read() as connection:
        stored = list(connection.scalars(select(schema.users.c.password)))
    assert all(row.startswith("$argon2id$") for row in stored)


def test_bad_messages_are_refused_without_their_words(
    project: Project, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with served(project) as base:
        ann = Visitor(base)
        ann.log_in("ann")
        task = task_of(project, "ann", 1)
        address = f"{base}/review/tasks/{task}/edits"
        headers = {"x-chaffinch-csrf": ann.csrf}
        mark = [0, 4, CANARY]
        bodies = [
            b"", b"[]", b"\xff", CANARY.encode(), b"[" * 100_000,
            f'{{"edits": [{{"id": "{CANARY}-0001", "added": [[0, 99999, "DATE"]]}}]}}'.encode(),
            f'{{"edits": [{{"id": "edit-000001", "added": [{mark}]}}]}}'.replace("'", '"').encode(),
        ]  # fmt: skip
        for body in bodies:
            answer = ann.client.post(address, content=body, headers=headers)
            assert 400 <= answer.status_code < 500
            assert CANARY not in answer.text
        assert ann.get(f"/review/tasks/{task}").json()["head"] == 0
    out = capfd.readouterr()
    assert CANARY not in caplog.text + out.out + out.err


def test_the_steward_adds_users_and_releases_through_pages(project: Project) -> None:
    with served(project) as base:
        sue = Visitor(base)
        sue.log_in("sue")
        assert sue.submit("/users", name="dan", role="reader", password=PASSWORD, quota="3").status_code == 303
        assert Visitor(base).log_in("dan").status_code == 303
        assert sue.submit("/users", name="eve", role="king", password=PASSWORD).status_code == 400
        for name in ("../x", "a/b", "", "x" * 80):
            assert sue.submit("/release", name=name).status_code == 400
        answer = sue.submit("/release", name="first")
        assert answer.status_code >= 400
        assert "2 of 2 notes are open" in answer.text
        assert not list((project.folder / "released").iterdir())
        for number in (1, 2):
            for name in ("ann", "bob"):
                confirm(Desk(project), name, number, NAME)
        answer = sue.submit("/release", name="first")
        assert answer.status_code == 200
        assert (project.folder / "released" / "first.jsonl").exists()
        assert "2 notes, 6 replacements" in answer.text
