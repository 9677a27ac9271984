# SPDX-License-Identifier: BSD-3-Clause
"""The result of a benchmark: tables, findings, and their origin. benchmarks/results/ has one file for each.

``python -m benchmarks.result peers`` prints the tables of a file, as Markdown. Neighbours: report.py makes
results, charts.py draws them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Table:
    """Rows of text, as a benchmark prints them: a cell may hold a number, a word or nothing.

    Attributes
    ----------
    title : str
        The table's title; empty if the result has one table.
    columns : list of str
        Heads of the columns.
    rows : list of list of str
        Cells, as many in each row as there are columns.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]

    def records(self) -> list[dict[str, str]]:
        """Return each row as a mapping from column to cell.

        A repeated head, such as C and D for several codecs, gets the number of its column behind it.
        """
        heads: list[str] = []
        for index, head in enumerate(self.columns):
            heads.append(f"{head} {index}" if head in heads else head)
        return [dict(zip(heads, row, strict=True)) for row in self.rows]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"**{self.title}**", ""] if self.title else []
        lines += ["| " + " | ".join(self.columns) + " |", "|---" + "|---:" * (len(self.columns) - 1) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines)


@dataclass(frozen=True)
class Result:
    """The result of a benchmark, and its origin.

    Attributes
    ----------
    command, commit, date : str
        The command, the commit of the project, and the date (UTC).
    machine : dict of str to str
        CPU, GPU, system, library, data: each as the benchmark printed it.
    legend : str
        The meaning of the columns.
    findings : list of str
        Floors that were held or not, geometric means.
    tables : list of Table
        The figures.
    """

    command: str
    commit: str
    date: str
    machine: dict[str, str]
    legend: str
    findings: list[str]
    tables: list[Table] = field(default_factory=list)

    @classmethod
    def of(cls, head: list[str], legend: str, findings: list[str], tables: list[Table]) -> Result:
        """Return a result from the lines that `benchmarks.report.origin` makes.

        Raises
        ------
        ValueError
            If the lines name no command or no commit with its date.
        """
        said: dict[str, str] = {}
        for line in head:
            name, colon, text = line.partition(": ")
            if line.startswith("pyfilter "):
                name, colon, text = "library", ":", line
            elif not colon:
                name, text = "also", line
            said[name] = f"{said[name]}; {text}" if name in said else text
        if "command" not in said or "; " not in said.get("commit", ""):
            message = f"a result needs the lines 'command: ...' and 'commit: ...; DATE', not {head}"
            raise ValueError(message)
        commit, _, date = said.pop("commit").rpartition("; ")
        return cls(said.pop("command"), commit, date, said, legend, findings, tables)

    @classmethod
    def load(cls, name: str) -> Result:
        """Return the result of benchmarks/results/<name>.json.

        Raises
        ------
        FileNotFoundError
            If no benchmark saved a result of this name; the message lists the names.
        """
        path = FOLDER / f"{name}.json"
        if not path.is_file():
            there = ", ".join(sorted(item.stem for item in FOLDER.glob("*.json")))
            message = f"no result {name!r} in {FOLDER}; there are {there}"
            raise FileNotFoundError(message)
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**stored, "tables": [Table(**table) for table in stored["tables"]]})

    def save(self, name: str) -> Path:
        """Write benchmarks/results/<name>.json, a line for each row so that changes are readable; return its path."""
        stored = {key: value for key, value in vars(self).items() if key != "tables"}
        lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in stored.items()]
        tables = []
        for table in self.tables:
            rows = ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in table.rows)
            title, columns = (json.dumps(item, ensure_ascii=False) for item in (table.title, table.columns))
            tables.append(f'  {{"title": {title},\n   "columns": {columns},\n   "rows": [\n{rows}\n  ]}}')
        lines.append(' "tables": [\n' + ",\n".join(tables) + "\n ]")
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{name}.json"
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return path

    def markdown(self) -> str:
        """Return everything as Markdown."""
        head = [f"command: {self.command}", f"commit: {self.commit}; {self.date}"]
        head += [f"{name}: {text}" for name, text in self.machine.items()]
        parts = ["```text\n" + "\n".join(head) + "\n```", self.legend]
        if self.findings:
            parts.append("\n".join(f"- {line}" for line in self.findings))
        return "\n\n".join([*parts, *(table.markdown() for table in self.tables)])


def main() -> None:
    """Print the named results."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or sorted(
        path.stem for path in FOLDER.glob("*.json")
    )
    for name in names:
        print(f"## {name}\n\n{Result.load(name).markdown()}\n")


if __name__ == "__main__":
    main()
