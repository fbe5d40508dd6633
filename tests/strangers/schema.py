"""Just enough of JSON Schema for the description of the review server: what fits it, and values that fit it."""

from typing import Any

from hypothesis import strategies as st

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


class Schemas:
    """The schemas of a document, which may name each other."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.named = document["components"]["schemas"]

    def _followed(self, schema: dict[str, Any]) -> dict[str, Any]:
        return dict(self.named[schema["$ref"].rpartition("/")[2]]) if "$ref" in schema else schema

    def misfit(self, value: Any, schema: dict[str, Any], where: str = "answer") -> str:
        """Return where ``value`` is not what ``schema`` says; nothing if it is.  Keys it does not name are a misfit."""
        schema = self._followed(schema)
        if "const" in schema:
            return "" if value == schema["const"] else f"{where} is {value!r}, not {schema['const']!r}"
        if "enum" in schema:
            return "" if value in schema["enum"] else f"{where} is {value!r}, none of {schema['enum']}"
        if "oneOf" in schema:
            return "" if sum(not self.misfit(value, one) for one in schema["oneOf"]) == 1 else f"{where} fits not one"
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        right = [kind for kind in kinds if isinstance(value, TYPES[kind])]
        if not right or (isinstance(value, bool) and right != ["boolean"]):
            return f"{where} is {value!r}, not {' or '.join(kinds)}"
        if isinstance(value, dict):
            return self._misfit_of_object(value, schema, where)
        if isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                return f"{where} has {len(value)} entries"
            return next(
                filter(None, (self.misfit(v, schema["items"], f"{where}[{n}]") for n, v in enumerate(value))), ""
            )
        if isinstance(value, str) and len(value) < schema.get("minLength", 0):
            return f"{where} is too short"
        below = isinstance(value, int | float) and value < schema.get("minimum", value)
        return f"{where} is {value}, which is too small" if below else ""

    def _misfit_of_object(self, value: dict[str, Any], schema: dict[str, Any], where: str) -> str:
        missing = [key for key in schema.get("required", ()) if key not in value]
        strange = [key for key in value if key not in schema["properties"]]
        if missing or strange:
            return f"{where} lacks {missing} and has {strange}"
        known = schema["properties"]
        return next(filter(None, (self.misfit(one, known[key], f"{where}.{key}") for key, one in value.items())), "")

    def values(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        """Return values that fit ``schema``."""
        schema = self._followed(schema)
        if "const" in schema:
            return st.just(schema["const"])
        if "oneOf" in schema:
            return st.one_of([self.values(one) for one in schema["oneOf"]])
        match schema["type"]:
            case "object":
                needed = {key: self.values(schema["properties"][key]) for key in schema.get("required", ())}
                rest = {key: self.values(one) for key, one in schema["properties"].items() if key not in needed}
                return st.fixed_dictionaries(needed, optional=rest)
            case "array":
                few = min(schema.get("maxItems", 4), 60)
                return st.lists(self.values(schema["items"]), min_size=schema.get("minItems", 0), max_size=few)
            case "integer":
                return st.integers(schema.get("minimum", -2), 20) | st.integers(schema.get("minimum"))
            case "string":
                return st.text(max_size=10) | st.sampled_from(["new-1", "new-2", "0", "junk", ""])
        raise AssertionError(f"nothing is known of {schema}")
