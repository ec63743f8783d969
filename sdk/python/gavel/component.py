"""The exports of the component, which the host calls, over the functions of the
plugin's author. `gavel plugin build` makes it the root of the component; it can
be imported only there."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import linecache
import os
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

from componentize_py_types import Err
from gavel_world.exports import lifecycle

with contextlib.suppress(ImportError):
    # Only an agent has it.
    from gavel_world.exports import agent

with contextlib.suppress(ImportError):
    # Only an advantage has it.
    from gavel_world.exports import advantage

with contextlib.suppress(ImportError):
    # Only a sampler has it.
    from gavel_world.exports import sampler

from . import advantages, chat, params, samplers
from .contract import types
from .exports import Export, exported, with_article
from .late import import_late, packages
from .reference import Reference
from .sample import Sample
from .states import _as_state
from .task import Answer, Task
from .verdict import Abstained, InvalidInput, Score, Unavailable, as_verdict

T = TypeVar("T")

_name = ""
_params: dict[str, Any] = {}
_late_module: tuple[str, Sequence[str]] | None = None


def load(name: str, module: str, interfaces: Sequence[str], preload: Sequence[str] = ()) -> None:
    """Imports the plugin's module at build time, and `preload`: the modules
    that it and Python's library would import when they are called, without
    files. The imports of its packages are included: if SymPy cannot import a
    part of itself, it finds equal expressions different.

    Raises SystemExit if the module does not define the exports.
    """
    _begin(name)
    _import(module)
    _import_all(preload)
    _check_exports(module, interfaces)
    _keep_sources()


def load_late(name: str, module: str, interfaces: Sequence[str], preload: Sequence[str]) -> None:
    """As `load`, but `init` imports the plugin's module, from the folder that
    the host mounts at `SOURCES`. The component is only for tests and need not
    be built again when the module changes. `preload` is everything that the
    module imports beside its own files.
    """
    global _late_module, _OWN
    _begin(name)
    _import_all(preload)
    _late_module, _OWN = (module, interfaces), SOURCES


def _load_now(module: str, interfaces: Sequence[str]) -> None:
    """Imports the module of `load_late`."""
    if not os.path.isdir(SOURCES):
        raise SystemExit(f"{_name} has no sources: `gavel plugin test --quick` made it\nhint: run `gavel plugin build`")
    if "gavel.sessions" in sys.modules:
        sys.modules["gavel.sessions"].stand_aside()
    sys.path.insert(0, SOURCES)
    _import(module)
    _check_exports(module, interfaces)


def _begin(name: str) -> None:
    global _name
    _name = name
    _connect()
    _let_alarms_be()
    _stand_in_for_ctypes()


def _connect() -> None:
    """Connects the modules of the SDK with the component's imports."""
    with contextlib.suppress(ImportError):
        from . import host_chat

        chat._host = host_chat.complete
    with contextlib.suppress(ImportError):
        from . import host_reward_models, reward_models

        reward_models._host = host_reward_models.ask
    with contextlib.suppress(ImportError):
        from . import host_programs, programs

        programs._host = host_programs.run
    with contextlib.suppress(ImportError):
        from . import host_policy, policy

        policy._host = host_policy
    with contextlib.suppress(ImportError):
        from . import host_http, host_urls, http

        http._host = host_http.exchange
        host_urls.install()


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:
        raise SystemExit(_failed_import(module, error)) from None


def _import_all(preload: Sequence[str]) -> None:
    for late in (*_LATE, *preload):
        # A missing module is an error when it is used, as elsewhere.
        with contextlib.suppress(ImportError):
            importlib.import_module(late)
    import_late(packages())


def _check_exports(module: str, interfaces: Sequence[str]) -> None:
    for interface in interfaces:
        if interface not in exported:
            raise SystemExit(
                f"{module}.py has no {interface}, which plugin.toml exports\n"
                f"hint: put @{interface} over the function that is the {interface}"
            )
    for interface in exported:
        if interface not in interfaces:
            raise SystemExit(
                f"{module}.py has {with_article(interface)}, which plugin.toml does not export\n"
                f'hint: add "{interface}" to `exports` in plugin.toml'
            )
    ranges = {export.score_range for export in exported.values() if export.score_range is not None}
    if len(ranges) > 1:
        raise SystemExit(f"{module}.py promises two score ranges\nhint: give reward and judger the same score_range")


# Modules that Python's library imports when it is called.
_LATE = ("_strptime", "encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_16")


def _let_alarms_be() -> None:
    """Makes functions that set an alarm as their time limit work. The alarm
    never comes, and the limits of the run end the call."""
    for name in ("alarm", "setitimer"):
        if not hasattr(signal, name):
            setattr(signal, name, lambda *_: 0)


def _stand_in_for_ctypes() -> None:
    """Replaces ctypes, which a component does not have. SymPy only asks it for
    the size of a long."""
    if "_ctypes" not in sys.builtin_module_names and importlib.util.find_spec("_ctypes") is None:
        module = ModuleType("ctypes")
        sizes = {"c_int": "i", "c_long": "l", "c_longlong": "q", "c_size_t": "P"}
        for name in sizes:
            setattr(module, name, type(name, (), {}))
        setattr(module, "sizeof", lambda kind: struct.calcsize(sizes[kind.__name__]))
        sys.modules["ctypes"] = module


def _keep_sources() -> None:
    """Keeps the lines of the plugin's own code, as there are no files when the
    component runs. So an error can show the line that raised it."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and _is_own(path):
            lines = linecache.getlines(path)
            # Without a modification time, the entry is never compared with the file.
            linecache.cache[path] = (sum(map(len, lines)), None, lines, path)


def _is_own(path: str) -> bool:
    """Whether a file is the plugin author's. Files of Python, of packages and
    of this SDK are in the folders after the first."""
    return path.startswith(_OWN)


# Where componentize-py mounts the first `--python-path`, the plugin's folder.
_OWN = "/0/"
# Where `gavel plugin test --quick` mounts it.
SOURCES = "/sources/"
# The suffix of the name of such a component, by which a run recognises it.
QUICK = "(quick)"


class Lifecycle:
    def init(self, params_json: str) -> Any:
        try:
            if _late_module is not None:
                _load_now(*_late_module)
            values = json.loads(params_json)
            if not isinstance(values, dict):
                raise params.ParameterError("the parameters must be a JSON object")
            _read_params(values)
        except params.ParameterError as error:
            raise Err(str(error)) from None
        except MemoryError:
            raise
        except SystemExit as error:
            raise Err(str(error)) from None
        except Exception as error:
            raise Err(_describe(error)) from None
        promises = exported.values()
        ranges = [export.score_range for export in promises if export.score_range is not None]
        return lifecycle.Info(
            name=_name if _late_module is None else f"{_name} {QUICK}",
            version=next(export.version for export in promises),
            pure=all(export.pure for export in promises),
            score_range=lifecycle.ScoreRange(*map(float, ranges[0])) if ranges else None,
        )


def _read_params(values: dict[str, Any]) -> None:
    taking = {name: export for name, export in exported.items() if export.params is not None}
    if not taking:
        params.refuse(values)
    for name, export in taking.items():
        if export.check_params is not None:
            export.check_params(values)
        _params[name] = params.read(export.params, values)


class Reward:
    def score(self, sample: Any, reference: Any) -> Any:
        def score() -> Any:
            value = _call("reward", sample=Sample._from_host(sample), reference=Reference._from_host(reference))
            if value is None:
                raise TypeError(_no_return(exported["reward"].function))
            return _verdict(as_verdict(value))

        return guarded(score)


class Judger:
    def judge(self, samples: Sequence[Any], reference: Any) -> Any:
        def judge() -> Any:
            group = [Sample._from_host(sample) for sample in samples]
            values = _call("judger", samples=group, reference=Reference._from_host(reference))
            if isinstance(values, (str, dict)) or not hasattr(values, "__iter__"):
                raise TypeError(f"a judger returns a list with one verdict for each sample, not {values!r:.80}")
            verdicts = [_verdict(as_verdict(value)) for value in values]
            if len(verdicts) != len(group):
                raise ValueError(f"the judger returned {len(verdicts)} verdicts for {len(group)} samples")
            return verdicts

        return guarded(judge)


class Taskset:
    def len(self) -> int | None:
        length = exported["taskset"].length
        return length(_params.get("taskset")) if callable(length) else length

    def get(self, index: int, seed: int) -> str:
        def get() -> str:
            row = _call("taskset", index=index, seed=seed)
            if not isinstance(row, dict):
                raise TypeError(f"a taskset returns a row as a dict, not {row!r:.80}")
            return json.dumps(row, ensure_ascii=False, allow_nan=False)

        return guarded(get)


class Agent:
    def run(self, task: Any) -> Any:
        def run() -> Any:
            answer = _call("agent", task=Task._from_host(task))
            if answer is None:
                raise TypeError(_no_return(exported["agent"].function, "the response"))
            if isinstance(answer, str):
                answer = Answer(answer)
            if not isinstance(answer, Answer) or not isinstance(answer.response, str):
                raise TypeError(f"an agent returns its response as a str or an Answer, not {answer!r:.80}")
            extra = None if answer.extra is None else as_json("extra", answer.extra)
            return agent.Answer(answer.response, extra)

        return guarded(run)


class Advantage:
    def estimate(self, step: int, groups: Sequence[Any], state: bytes) -> Any:
        def estimate() -> Any:
            given = [advantages._group(group) for group in groups]
            value = _call("advantage", groups=given, step=step, state=state)
            if value is None:
                raise TypeError(_no_return(exported["advantage"].function, "the advantages of each group"))
            made = advantages._as_estimates(value)
            estimated = [[_sample_advantage(one) for one in group] for group in made.advantages]
            return advantage.Estimates(estimated, _as_state(made.state))

        return guarded(estimate)


def _sample_advantage(value: Any) -> Any:
    form, numbers = advantages._form(value)
    return getattr(advantage, f"SampleAdvantage_{form}")(numbers)


class Sampler:
    def sample(self, request: Any) -> Any:
        def sample() -> Any:
            given = samplers._request(request)
            value = _call("sampler", request=given)
            if value is None:
                raise TypeError(_no_return(exported["sampler"].function, "the tasks that are drawn"))
            made = samplers._as_draws(value)
            draws = [sampler.Task(*samplers._place(task, given.datasets)) for task in made.draws]
            refusals = [sampler.Refusal(draw, reason) for draw, reason in samplers._as_refusals(made.refusals)]
            return sampler.Answer(draws, refusals, _as_state(made.state))

        return guarded(sample)


def params_of(interface: str) -> Any:
    """The parameters of the function behind this export."""
    return _params.get(interface)


def _call(interface: str, **arguments: Any) -> Any:
    export: Export = exported[interface]
    return export.call(_params.get(interface), **arguments)


def guarded(call: Callable[[], T]) -> T:
    """Calls it and turns exceptions into failures that the host can report.

    An exception that left the component would be a trap, without a reason for
    the host. A MemoryError is not converted: the host knows that it refused the
    memory.
    """
    try:
        return call()
    except InvalidInput as error:
        raise Err(types.Failure_InvalidInput(str(error))) from None
    except Unavailable as error:
        raise Err(types.Failure_Unavailable(str(error))) from None
    except MemoryError:
        raise
    except BaseException as error:
        # The whole traceback goes to the host's log, unless it has only lines of this SDK: then the message is enough.
        if _own_frames(error):
            traceback.print_exc()
        raise Err(types.Failure_Internal(_describe(error))) from None


def _describe(error: BaseException) -> str:
    """An exception in one line, with the line of the plugin that it came from."""
    words = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, ModuleNotFoundError):
        words += "; a component imports modules only when it is built: import it at the top of the file"
    own = _own_frames(error)
    if not own:
        return words
    last = own[-1]
    return f"{words} ({last.filename.removeprefix(_OWN)}, line {last.lineno}, in {last.name}: {last.line})"


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]


def _failed_import(module: str, error: Exception) -> str:
    """Why the plugin's module cannot be imported, with only the author's lines."""
    lines = [f"{module}.py cannot be imported"]
    for frame in _own_frames(error):
        lines.append(f"  {frame.filename.removeprefix(_OWN)}, line {frame.lineno}, in {frame.name}: {frame.line}")
    words = "".join(traceback.format_exception_only(error)).strip()
    return "\n".join([*lines, *words.replace(_OWN, "").splitlines()])


def _no_return(function: Callable[..., Any], value: str = 'a number, or `return abstain("why")` to give none') -> str:
    """The message about a reward that returned nothing, with the line where it begins."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    place = ""
    if code is not None and _is_own(code.co_filename):
        place = f" ({code.co_filename.removeprefix(_OWN)}, line {code.co_firstlineno})"
    name = getattr(function, "__name__", "the reward")
    return f"`{name}`{place} returned None: end it with `return` and {value}"


def _verdict(verdict: Score | Abstained) -> Any:
    if isinstance(verdict, Abstained):
        return types.Verdict_Abstained(verdict.reason)
    metrics = [types.Metric(name, value) for name, value in verdict.metrics.items()]
    credit = [types.Credit(part.trajectory, part.message, part.start, part.end, part.value) for part in verdict.credit]
    payload = None if verdict.payload is None else as_json("payload", verdict.payload)
    return types.Verdict_Scored(types.Score(verdict.value, metrics, credit, verdict.note, payload))


def as_json(what: str, value: Any) -> str:
    """The JSON of a value that is recorded; the error names it."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the `{what}` is not JSON: {error}") from None
