"""The constructs of OpenACC and the clauses that each may have."""

from __future__ import annotations

DATA = ["copy", "copyin", "copyout", "create", "no_create", "present", "deviceptr", "attach"]
COMPUTE = [
    "async",
    "wait",
    "num_gangs",
    "num_workers",
    "vector_length",
    "private",
    "firstprivate",
    "reduction",
    "self",
    "if",
    "default",
    "device_type",
]
LOOP = [
    "collapse",
    "gang",
    "worker",
    "vector",
    "seq",
    "independent",
    "auto",
    "tile",
    "device_type",
    "private",
    "reduction",
]

# What the construct stands before: a statement of any kind, a for statement, an expression statement, or nothing.
CONSTRUCTS = {
    "parallel loop": ("for", [*COMPUTE, *LOOP, *DATA]),
    "kernels loop": ("for", [*COMPUTE, *LOOP, *DATA]),
    "serial loop": ("for", [*COMPUTE, *LOOP, *DATA]),
    "enter data": ("", ["if", "async", "wait", "copyin", "create", "attach"]),
    "exit data": ("", ["if", "async", "wait", "copyout", "delete", "detach", "finalize"]),
    "parallel": ("statement", [*COMPUTE, *DATA]),
    "kernels": ("statement", [*COMPUTE, *DATA]),
    "serial": ("statement", [*COMPUTE, *DATA]),
    "data": ("statement", [*DATA, "if", "async", "wait", "default"]),
    "host_data": ("statement", ["use_device", "if", "if_present"]),
    "loop": ("for", LOOP),
    "atomic": ("statement", ["read", "write", "update", "capture", "if"]),
    "update": ("", ["async", "wait", "device_type", "if", "if_present", "self", "host", "device"]),
    "declare": ("", [*DATA, "device_resident", "link"]),
    "routine": ("", ["gang", "worker", "vector", "seq", "bind", "device_type", "nohost"]),
    "wait": ("", ["async", "if"]),
    "cache": ("", []),
    "init": ("", ["device_type", "device_num", "if"]),
    "shutdown": ("", ["device_type", "device_num", "if"]),
    "set": ("", ["default_async", "device_num", "device_type", "if"]),
}
COMPUTE_CONSTRUCTS = {name for name in CONSTRUCTS if name.split()[0] in ("parallel", "kernels", "serial")}
ARGUMENTS_FIRST = {"wait", "cache", "routine"}  # the construct itself takes them
# Clauses that make sense more than once.
REPEATED = {*DATA, "delete", "detach", "use_device", "self", "host", "device", "device_resident", "link"} | {
    "private",
    "firstprivate",
    "reduction",
    "wait",
    "device_type",
}
# Of a compute construct, self has a condition; of update, variables.
ONCE_IN_COMPUTE = {"self"}
NEED_ARGUMENT = {
    *DATA,
    "private",
    "firstprivate",
    "reduction",
    "collapse",
    "num_gangs",
    "num_workers",
    "vector_length",
} | {
    "if",
    "default",
    "tile",
    "use_device",
    "delete",
    "detach",
    "host",
    "device",
    "device_resident",
    "link",
    "device_num",
    "default_async",
    "bind",
}
NO_ARGUMENT = set(
    ["seq", "independent", "auto", "finalize", "if_present", "nohost", "read", "write", "update", "capture"]
)
# Their arguments are names of variables, with sections where these are arrays.
VARIABLES = {
    *DATA,
    "private",
    "firstprivate",
    "reduction",
    "use_device",
    "delete",
    "detach",
    "self",
    "host",
    "device",
} | {
    "device_resident",
    "link",
    "cache",
}
