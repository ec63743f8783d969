"""Prints as JSON the installed packages that hold compiled code: `package`,
`file`, and `asked_by`, the packages that lead to it.

    python3 -c "$(cat packages.py)" FOLDER
"""

import json
import re
import sys
from importlib import metadata

COMPILED = (".so", ".pyd", ".dylib", ".dll")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def main():
    found = {normal(dist.metadata["Name"]): dist for dist in metadata.distributions(path=[sys.argv[1]])}
    asked_by = {}
    for name, dist in sorted(found.items()):
        for line in dist.requires or ():
            if "extra ==" not in line:
                asked_by.setdefault(normal(re.match(r"[A-Za-z0-9._-]+", line)[0]), name)
    compiled = []
    for name, dist in sorted(found.items()):
        files = [str(file) for file in dist.files or () if str(file).endswith(COMPILED) or ".so." in str(file)]
        if files:
            files.sort(key=lambda file: ".libs/" in file)
            chain, step = [], name
            while (step := asked_by.get(step)) and step not in (name, *chain):
                chain.append(step)
            compiled.append({"package": f"{name} {dist.version}", "file": files[0], "asked_by": chain})
    print(json.dumps(compiled))


main()
