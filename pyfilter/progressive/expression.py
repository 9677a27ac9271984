# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of several datasets, and proven bounds of their errors by interval arithmetic.

At a point each variable is known to an error, so a formula's value lies in an interval. It is computed operation by
operation, and each end is moved outwards by the largest rounding error. The interval contains the formula's exact value
for the exact data.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ALLOWED = "numbers, the datasets' names, + - * /, ** with an integer of 1 to 64 or 0.5, sqrt(x), abs(x)"


class Interval(NamedTuple):
    """Lowest and highest value at each point; NaN where the value is unknown."""

    low: Floats
    high: Floats


def _out(low: Floats, high: Floats) -> Interval:
    """A step outwards: more than half a unit in the last place, the rounding error of an operation."""
    return Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def _add(a: Interval, b: Interval) -> Interval:
    return _out(a.low + b.low, a.high + b.high)


def _negative(a: Interval) -> Interval:
    return Interval(-a.high, -a.low)


def _times(a: Interval, b: Interval) -> Interval:
    products = np.stack((a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high))
    # 0 * infinity: an unbounded end makes the product unknown
    products = np.where(np.isnan(products), np.inf, products)
    low = np.where(np.isinf(products).any(axis=0), -np.inf, products.min(axis=0))
    return _out(low, products.max(axis=0))


def _inverse(a: Interval) -> Interval:
    through_zero = (a.low <= 0) & (a.high >= 0)
    low, high = np.where(through_zero, -np.inf, 1 / a.high), np.where(through_zero, np.inf, 1 / a.low)
    return _out(low, high)


def _absolute(a: Interval) -> Interval:
    low = np.where(a.low > 0, a.low, np.where(a.high < 0, -a.high, 0.0))
    return Interval(low, np.maximum(np.abs(a.low), np.abs(a.high)))


def _power(a: Interval, exponent: int) -> Interval:
    base = _absolute(a) if exponent % 2 == 0 else a
    low, high = base.low, base.high
    result_low, result_high = low, high
    for _ in range(exponent - 1):  # both ends alone: powers grow with their base
        if exponent % 2 == 0:
            result_low = np.maximum(np.nextafter(result_low * low, -np.inf), 0.0)
            result_high = np.nextafter(result_high * high, np.inf)
            continue
        # odd: the product of magnitudes, rounded outwards
        result_low = _signed_product(result_low, low, -np.inf)
        result_high = _signed_product(result_high, high, np.inf)
    return Interval(result_low, result_high)


def _signed_product(power: Floats, base: Floats, towards: float) -> Floats:
    """base**(n + 1) of base**n with the sign of the base, one step in a direction."""
    magnitude = np.abs(power) * np.abs(base)
    away = np.where(np.signbit(base), -towards, towards)
    magnitude = np.maximum(np.nextafter(magnitude, np.where(away > 0, np.inf, -np.inf)), 0.0)
    result: Floats = np.copysign(magnitude, base)
    return result


def _root(a: Interval) -> Interval:
    low, high = np.sqrt(np.maximum(a.low, 0.0)), np.sqrt(a.high)  # NaN where all of it is negative
    return Interval(np.maximum(np.nextafter(low, -np.inf), 0.0), np.nextafter(high, np.inf))


class Expression:
    """A formula.

    Parameters
    ----------
    text : str
        In Python's notation: numbers, names, ``+ - * /``, powers, ``sqrt`` and ``abs``.

    Raises
    ------
    InvalidArgument
        If there is anything else in it.
    """

    def __init__(self, text: str) -> None:
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError) as error:
            message = f"qoi {text!r} is no formula: {error}"
            raise InvalidArgument(message) from None
        self.text = text
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self._check(self._tree)))

    def _check(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Name):
            return [node.id]
        if isinstance(node, ast.Constant) and _is_number(node.value):
            return []
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return self._check(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            return self._check(node.left) + self._check(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _exponent(node.right) is not None:
            return self._check(node.left)
        if isinstance(node, ast.Call) and _function(node) is not None:
            return self._check(node.args[0])
        message = f"qoi {self.text!r}: {ast.unparse(node)!r} is not allowed here; allowed: {ALLOWED}"
        raise InvalidArgument(message)

    def value(self, values: Mapping[str, Any]) -> Floats:
        """Return the formula of these values, in binary64."""
        with np.errstate(all="ignore"):
            result: Floats = np.asarray(self._value(self._tree, values), np.float64)
        return result

    def _value(self, node: Any, values: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Name):
            return np.asarray(values[node.id], np.float64)
        if isinstance(node, ast.Constant):
            return np.float64(float(_number(node.value)))
        if isinstance(node, ast.UnaryOp):
            inner = self._value(node.operand, values)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Call):
            inner = self._value(node.args[0], values)
            return np.sqrt(inner) if _function(node) == "sqrt" else np.abs(inner)
        left = self._value(node.left, values)
        if isinstance(node.op, ast.Pow):
            exponent = _exponent(node.right)
            return np.sqrt(left) if exponent == 0.5 else left ** np.float64(exponent)
        right = self._value(node.right, values)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        return left * right if isinstance(node.op, ast.Mult) else left / right

    def error(self, values: Mapping[str, Any], errors: Mapping[str, Any], exact: Any = False) -> Floats:
        """Return a bound of the error of `value` at each point.

        Parameters
        ----------
        values, errors
            For each name: the known value, and its largest possible error. 0 where a value is not finite: it is exact.
        exact
            Where values are missing, so that nothing is asked of the formula.

        Returns
        -------
        numpy.ndarray
            float64; infinite where nothing can be said, as where a divisor may be 0. 0 where the formula of exact
            values is not finite.
        """
        with np.errstate(all="ignore"):
            boxes = {}
            exact = np.asarray(exact, np.bool_)
            for name in self.names:
                x = np.asarray(values[name], np.float64)
                e = np.where(np.isfinite(x), np.asarray(errors[name], np.float64), 0.0)
                boxes[name] = _out(x - e, x + e)
                exact = exact | ~np.isfinite(x)
            result = self._interval(self._tree, boxes)
            f = self.value(values)
            low, high = np.broadcast_arrays(result.low, result.high)
            error = np.maximum(np.nextafter(high - f, np.inf), np.nextafter(f - low, np.inf))
            return np.where(exact, 0.0, np.where(np.isnan(error), np.inf, error))

    def _interval(self, node: Any, boxes: Mapping[str, Interval]) -> Interval:
        if isinstance(node, ast.Name):
            return boxes[node.id]
        if isinstance(node, ast.Constant):
            constant: Floats = np.asarray(float(_number(node.value)), np.float64)
            exact = float(constant) == node.value
            return Interval(constant, constant) if exact else _out(constant, constant)
        if isinstance(node, ast.UnaryOp):
            inner = self._interval(node.operand, boxes)
            return _negative(inner) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Call):
            inner = self._interval(node.args[0], boxes)
            return _root(inner) if _function(node) == "sqrt" else _absolute(inner)
        left = self._interval(node.left, boxes)
        if isinstance(node.op, ast.Pow):
            exponent = _exponent(node.right)
            return _root(left) if exponent == 0.5 else _power(left, int(exponent or 1))
        right = self._interval(node.right, boxes)
        if isinstance(node.op, ast.Add):
            return _add(left, right)
        if isinstance(node.op, ast.Sub):
            return _add(left, _negative(right))
        return _times(left, right if isinstance(node.op, ast.Mult) else _inverse(right))


def _is_number(value: object) -> bool:
    """Whether a constant is a finite number within the range of floats."""
    return (type(value) is int and abs(value) < 1 << 1000) or (type(value) is float and math.isfinite(value))


def _number(value: Any) -> float:
    return float(value)


def _exponent(node: ast.AST) -> int | float | None:
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if type(value) is int and 1 <= value <= 64:
        return value
    return 0.5 if type(value) is float and value == 0.5 else None


def _function(node: ast.Call) -> str | None:
    if not isinstance(node.func, ast.Name) or node.func.id not in ("sqrt", "abs"):
        return None
    return node.func.id if len(node.args) == 1 and not node.keywords else None
