"""Reads a plugin's imports without running it, and prints as JSON

- `functions`: those at the top of the module, with `name`, `arguments`, and
  whether it takes any other name (`takes_any`);
- `local`: the plugin's own files that are imported, relative to the folder;
- `preload`: every module that is imported inside a function, which must be
  imported at build time, because a component has no files to import later;
- `outside`: every module that is imported and is not the plugin's own;
- `problems`: imports that a component cannot contain, with `file`, `line`, `module`,
  `why`, `hint`, and whether only a package is `missing`; or files that cannot
  be `parsed`;
- `warnings`: calls that will fail when the component runs, likewise.

    python3 -c "$(cat scan.py)" [--http] FOLDER ENTRY [PACKAGES…]

FOLDER holds the plugin, ENTRY is its first module, each of PACKAGES a folder
with modules for the component. With `--http`, the plugin asks servers.
"""

import ast
import json
import sys
from pathlib import Path

NETWORK = "there are no sockets in the sandbox"
ASK = (
    'ask a server through `from gavel import http` or urllib.request, with imports = ["http"] in plugin.toml and an '
    'http grant in the run; ask a model through `from gavel import chat`, with imports = ["chat"] and a chat grant'
)
RUN = 'run a program through `from gavel import programs`, with imports = ["exec"] in plugin.toml and an exec grant'
NATIVE = "it is compiled for this machine, and a component runs only Python"
PURE = "write that part in Python, or leave it out"
SERVE = (
    "or serve the function, with any package: `PYTHONPATH=vendor python -m gavel.service rewards.py:compute_score --verl "
    '--port 8000`, and url = "http://127.0.0.1:8000" in place of path in its [[reward]] (plugins/service/README.md)'
)
ELSEWHERE = "it is a package that is not part of the plugin"
STANDARD = (
    "take the standard reward, such as `gsm8k` or `math` (docs/plugins.md, \"In place of verl's\"), or copy the function "
    "into the plugin"
)
LIMITS = "leave it out: the run's `limits` end a call that takes too long, and report it"
READ = "read small tables when the module is imported; files of a run need a read grant"

# Modules of Python's library that a component does not have, or that do not work there.
LIBRARY = {
    "subprocess": ("there are no processes in the sandbox", RUN),
    "multiprocessing": ("there are no processes in the sandbox", "leave it out: the host runs many calls at once"),
    "resource": ("it is not part of Python in a component", LIMITS),
    "socket": (NETWORK, ASK),
    "socketserver": (NETWORK, ASK),
    "ssl": (NETWORK, ASK),
    "http.client": (NETWORK, ASK),
    "http.server": (NETWORK, ASK),
    "urllib.request": (NETWORK, ASK),
    "ftplib": (NETWORK, ASK),
    "smtplib": (NETWORK, ASK),
    "imaplib": (NETWORK, ASK),
    "poplib": (NETWORK, ASK),
    "xmlrpc": (NETWORK, ASK),
    **{
        name: ("it is not part of Python in a component", PURE)
        for name in (
            "bz2", "ctypes", "curses", "fcntl", "grp", "lzma", "mmap", "msvcrt", "pty", "pwd", "readline",
            "syslog", "termios", "tkinter", "tty", "winreg", "winsound", "ensurepip", "venv",
        )  # fmt: skip
    },
}  # fmt: skip

# The modules that work where the plugin asks servers.
OVER_HTTP = ("urllib.request",)

# Packages that do not work, whether or not they can be installed.
PACKAGES = {
    **{
        name: (NETWORK, f"{ASK}; {SERVE}")
        for name in (
            "aiohttp", "anthropic", "boto3", "botocore", "cohere", "google", "grpc", "httpx", "huggingface_hub",
            "langchain", "langchain_openai", "litellm", "openai", "psycopg2", "redis", "requests", "sandbox_fusion",
            "tornado", "urllib3", "websocket", "websockets",
        )  # fmt: skip
    },
    **{
        name: (NATIVE, f"{PURE}, {SERVE}")
        for name in (
            "bert_score", "cupy", "cv2", "datasets", "evaluate", "gmpy2", "jax", "Levenshtein", "lxml", "numba", "numpy",
            "onnxruntime", "orjson", "pandas", "PIL", "polars", "pyarrow", "rapidfuzz", "ray", "rdkit", "scipy",
            "sentence_transformers", "sentencepiece", "sklearn", "spacy", "tensorflow", "tiktoken", "tokenizers",
            "torch", "transformers", "vllm", "xgboost",
        )  # fmt: skip
    },
    "verl": (ELSEWHERE, STANDARD),
}  # fmt: skip

# Calls that fail when the component runs.
CALLS = {
    "open": ("there are no files in the sandbox", READ),
    "os.system": ("there are no processes in the sandbox", RUN),
    "os.popen": ("there are no processes in the sandbox", RUN),
    "threading.Thread": ("there are no threads in the sandbox", "call the function itself"),
    "ThreadPoolExecutor": ("there are no threads in the sandbox", "call the functions one after the other"),
    "ProcessPoolExecutor": ("there are no processes in the sandbox", "call the functions one after the other"),
}


class Scan:
    def __init__(self, folder, packages, http):
        self.folder, self.packages, self.http = folder, packages, http
        self.local, self.preload, self.outside, self.problems, self.warnings = {}, set(), set(), [], []

    def module(self, name):
        """Reads a module of the plugin, and those that it imports."""
        path = self.find(self.folder, name)
        if path is None or path in self.local:
            return
        self.local[path] = name
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        except (SyntaxError, UnicodeDecodeError) as error:
            line = getattr(error, "lineno", None) or 1
            text = (getattr(error, "text", None) or "").strip()
            why = f"{getattr(error, 'msg', error)}{text and f': `{text}`'}"
            self.problem(path, line, name, why, "correct that line", parsed=False)
            return
        Visitor(self, path, package).visit(tree)

    def find(self, folder, name):
        place = folder.joinpath(*name.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
        return None

    def imported(self, path, line, name, lazy, optional):
        """Notes that the file at `path` imports `name`."""
        parents = [name.rsplit(".", cut)[0] for cut in range(name.count(".") + 1)]
        top = parents[-1]
        if self.find(self.folder, top) or (self.folder / top).is_dir():
            for parent in parents:
                self.module(parent)
        else:
            if not optional and not self.comes_along(path, line, name, parents):
                return
            self.outside.add(name)
        if lazy:
            self.preload.add(name)

    def comes_along(self, path, line, name, parents):
        """Whether a module that is not the plugin's is in the component."""
        top = parents[-1]
        if self.http and name in OVER_HTTP:
            return True
        known = next((LIBRARY[parent] for parent in parents if parent in LIBRARY), None)
        known = known or PACKAGES.get(top)
        if known:
            self.problem(path, line, name, *known)
            return False
        if top not in sys.stdlib_module_names and not any(
            self.find(folder, top) or (folder / top).is_dir() for folder in self.packages
        ):
            hint = f"add the package that has `{top}` to requirements.txt, or put the module beside {path.name}"
            self.problem(path, line, name, "no package in requirements.txt has it", hint, missing=True)
            return False
        return True

    def problem(self, path, line, module, why, hint, missing=False, parsed=True):
        file = str(path.relative_to(self.folder))
        problem = {"file": file, "line": line, "module": module, "why": why, "hint": hint}
        self.problems.append({**problem, "missing": missing, "parsed": parsed})

    def warning(self, path, line, call, why, hint):
        file = str(path.relative_to(self.folder))
        self.warnings.append({"file": file, "line": line, "module": call, "why": why, "hint": hint})


class Visitor(ast.NodeVisitor):
    def __init__(self, scan, path, package):
        self.scan, self.path, self.package = scan, path, package
        self.lazy = self.optional = False

    def visit_Import(self, node):
        for alias in node.names:
            self.imported(node, alias.name)

    def visit_ImportFrom(self, node):
        base = node.module or ""
        if node.level:
            parts = self.package.split(".") if self.package else []
            base = ".".join(parts[: len(parts) - node.level + 1] + ([base] if base else []))
        if base:
            self.imported(node, base)
        for alias in node.names:
            # A name may be a module of the package.
            name = f"{base}.{alias.name}" if base else alias.name
            if self.scan.find(self.scan.folder, name) or name in LIBRARY:
                self.imported(node, name)
            elif any(self.scan.find(folder, name) for folder in self.scan.packages):
                self.scan.outside.add(name)
                if self.lazy:
                    self.scan.preload.add(name)
        if base == "concurrent.futures":
            # Loaded when its name is first used.
            self.scan.preload.add("concurrent.futures.thread")
            self.scan.outside.add("concurrent.futures.thread")

    def imported(self, node, name):
        if name != "__future__":
            self.scan.imported(self.path, node.lineno, name, self.lazy, self.optional)

    def visit_FunctionDef(self, node):
        for part in node.decorator_list:
            self.visit(part)
        before, self.lazy = self.lazy, True
        for part in [node.args, *node.body]:
            self.visit(part)
        self.lazy = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Try(self, node):
        caught = {name for handler in node.handlers for name in names(handler.type)}
        before = self.optional
        if caught & {"", "ImportError", "ModuleNotFoundError", "Exception", "BaseException"}:
            self.optional = True
        for part in node.body:
            self.visit(part)
        self.optional = before
        for part in [*node.handlers, *node.orelse, *node.finalbody]:
            self.visit(part)

    def visit_If(self, node):
        test = ast.unparse(node.test)
        if test in ("TYPE_CHECKING", "typing.TYPE_CHECKING") or test.replace('"', "'") == "__name__ == '__main__'":
            for part in node.orelse:
                self.visit(part)
        else:
            self.generic_visit(node)

    def visit_Call(self, node):
        call = ast.unparse(node.func)
        known = CALLS.get(call) or CALLS.get(call.rpartition(".")[2] if call.endswith("PoolExecutor") else call)
        if known and self.lazy:
            self.scan.warning(self.path, node.lineno, f"{call}()", *known)
        self.generic_visit(node)


def names(kind):
    if kind is None:
        return [""]
    return [ast.unparse(part) for part in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]


def functions(path):
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (SyntaxError, UnicodeDecodeError):
        return []
    return [
        {
            "name": node.name,
            "arguments": [argument.arg for argument in node.args.args + node.args.kwonlyargs],
            "takes_any": node.args.kwarg is not None,
        }
        for node in body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def main():
    http = sys.argv[1] == "--http"
    folder, entry, *packages = sys.argv[1 + http :]
    scan = Scan(Path(folder), [Path(package) for package in packages], http)
    scan.module(entry)
    found = {
        "functions": functions(scan.find(scan.folder, entry)),
        "local": sorted(str(path.relative_to(scan.folder)) for path in scan.local),
        "preload": sorted(scan.preload),
        "outside": sorted(scan.outside),
        "problems": scan.problems,
        "warnings": scan.warnings,
    }
    print(json.dumps(found))


main()
