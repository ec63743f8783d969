import unittest

from gavel import Unavailable, http, programs, reward_models
from gavel.http import Request, Response, redirected
from gavel.programs import Exited, Job, Output, OutOfBudget
from gavel.testing import scripted_http, scripted_programs, scripted_reward_models

JUDGE = "https://judge.example"


class Responses(unittest.TestCase):
    def test_a_body_is_read_as_its_charset(self) -> None:
        for content, kind, text in [
            ("süß".encode(), "", "süß"),
            ("süß".encode("latin-1"), 'text/plain; Charset="Latin-1"', "süß"),
            ("süß".encode("latin-1"), "text/plain; charset=nonsense", "s\ufffd\ufffd"),
            (b"\xff", "application/octet-stream", "\ufffd"),
        ]:
            self.assertEqual(Response(200, content, {"Content-Type": kind}).text, text)

    def test_headers_are_named_in_any_case(self) -> None:
        headers = Response(headers=[("Set-Cookie", "a"), ("set-cookie", "b"), ("X", "1")]).headers
        self.assertEqual((headers["SET-COOKIE"], headers.get_all("set-cookie")), ("a, b", ["a", "b"]))
        self.assertEqual((list(headers), "x" in headers, headers.get("y")), (["set-cookie", "x"], True, None))

    def test_an_error_says_whether_another_attempt_may_help(self) -> None:
        fine = Response(204)
        self.assertIs(fine.raise_for_status(), fine)
        for status, kind in [(404, http.Refused), (408, Unavailable), (429, Unavailable), (503, Unavailable)]:
            with self.assertRaisesRegex(kind, f"https://a answered {status}: too bad"):
                Response(status, "too\nbad", url="https://a").raise_for_status()


class Requests(unittest.TestCase):
    def test_bodies(self) -> None:
        self.assertEqual(Request("POST", "", json={"a": [1]}).body(), b'{"a": [1]}')
        self.assertEqual(Request("POST", "", data="é").body(), "é".encode())
        self.assertEqual(Request("GET", "").body(), b"")

    def test_redirects(self) -> None:
        secret = {"Authorization": "secret", "Content-Type": "text/plain", "X-A": "1"}
        for method, status, location, expected in [
            ("POST", 302, "/b", ("GET", "https://a/b", b"", ["Authorization", "X-A"])),
            ("POST", 303, "b", ("GET", "https://a/x/b", b"", ["Authorization", "X-A"])),
            ("PUT", 303, "b", ("GET", "https://a/x/b", b"", ["Authorization", "X-A"])),
            ("PUT", 301, "b", ("PUT", "https://a/x/b", b"hi", list(secret))),
            ("POST", 308, "https://a:444/b", ("POST", "https://a:444/b", b"hi", ["Content-Type", "X-A"])),
            ("HEAD", 303, "//c/b", ("HEAD", "https://c/b", b"hi", ["Content-Type", "X-A"])),
        ]:
            request = Request(method, "https://a/x/y", secret, "hi")
            found = redirected(request, Response(status, headers={"location": location}))
            assert found is not None
            self.assertEqual((found.method, found.url, found.body(), list(found.headers)), expected)
        self.assertIsNone(redirected(Request("GET", "https://a"), Response(302)))
        self.assertIsNone(redirected(Request("GET", "https://a"), Response(304, headers={"location": "/b"})))
        unfollowed = Request("GET", "https://a", follow_redirects=False)
        self.assertIsNone(redirected(unfollowed, Response(302, headers={"location": "/b"})))


class Http(unittest.TestCase):
    def test_a_test_says_what_servers_answer(self) -> None:
        moved = Response(307, headers={"location": f"{JUDGE}/new"})
        replies = {JUDGE: [b'{"score": 0.5}', moved, "moved", Unavailable("busy")], "https://a": ["a"]}
        with scripted_http(replies) as asked:
            self.assertEqual(http.post(f"{JUDGE}/score", json={"q": 1}, timeout=3).json(), {"score": 0.5})
            self.assertEqual((response := http.get(f"{JUDGE}/old")).text, "moved")
            self.assertEqual(response.url, f"{JUDGE}/new")
            both = http.exchange([Request("GET", JUDGE), Request("GET", "https://a")])
            self.assertEqual([type(answer) for answer in both], [Unavailable, Response])
            with self.assertRaisesRegex(http.Refused, "no grant of the run covers https://b"):
                http.send_all([Request("GET", "https://b")])
        self.assertEqual((asked[0].method, asked[0].json, asked[0].timeout), ("POST", {"q": 1}, 3))
        with self.assertRaisesRegex(RuntimeError, 'add imports = \\["http"\\] to plugin.toml'):
            http.get(JUDGE)


class RewardModels(unittest.TestCase):
    def test_a_test_says_what_reward_models_score(self) -> None:
        steps = reward_models.Scored(0.25, [reward_models.Step(0, 3, 0.25)])
        with scripted_reward_models({"quality": [0.5, 1, -2, steps, Unavailable("busy")]}) as asked:
            self.assertEqual(reward_models.score("quality", "Hello"), 0.5)
            self.assertEqual(reward_models.score_all("quality", ["a", "b"]), [1, -2])
            self.assertEqual(reward_models.score_steps("quality", "abc"), steps)
            with self.assertRaisesRegex(Unavailable, "busy"):
                reward_models.score("quality", "Hello")
            with self.assertRaisesRegex(reward_models.InvalidRequest, "`taste` is not granted"):
                reward_models.score("taste", "Hello")
        self.assertEqual([request.model for request in asked], ["quality"] * 5 + ["taste"])
        with self.assertRaisesRegex(RuntimeError, 'add imports = \\["reward-model"\\] to plugin.toml'):
            reward_models.score("quality", "Hello")


class Programs(unittest.TestCase):
    def test_a_test_says_what_programs_print(self) -> None:
        slow = Output(ending=OutOfBudget("cpu"))
        with scripted_programs({"python": ["4\n", slow, Output(b"\xff", ending=Exited(1)), Unavailable("no room")]}) as jobs:
            output = programs.run("python", "code", stdin="2 2", cpu_ms=100)
            self.assertEqual((output.text, output.ok), ("4\n", True))
            found = programs.run_all([Job("python"), Job("python")])
            self.assertEqual([(output.text, output.ok) for output in found], [("", False), ("\ufffd", False)])
            with self.assertRaisesRegex(Unavailable, "no room"):
                programs.run("python")
            with self.assertRaisesRegex(programs.InvalidRequest, "`perl` is not granted"):
                programs.run("perl")
        self.assertEqual(jobs[0], Job("python", ("code",), "2 2", 100))
        with self.assertRaisesRegex(RuntimeError, 'add imports = \\["exec"\\] to plugin.toml'):
            programs.run("python")


if __name__ == "__main__":
    unittest.main()
