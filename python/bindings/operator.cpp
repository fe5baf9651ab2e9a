// Operators that are Python functions: see operator.hpp.
#include "operator.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "arguments.hpp"
#include "module.hpp"
#include "owner.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

/// The interpreter's lock, in a thread that may have it already, and may not be Python's.
class Locked {
 public:
  Locked() {
    try {
      state_ = PyGILState_Ensure();
    } catch (const abi::__forced_unwind&) {  // the interpreter has ended: see `take_lock` in owner.cpp
      for (;;) pause();
    }
  }
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_{};
};

/// What a function raised, as the exception of the calls that drive the operation. Other ranks get its text.
class FunctionFailed : public nb::python_error {
 public:
  FunctionFailed(const nb::python_error& error, std::string text) : nb::python_error(error), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// A function with what its calls need. The last of its holders may have no lock.
struct Function {
  PyOperator op;
  nb::object dtype;
  nb::object from_memory;  ///< numpy.frombuffer
  std::string called;      ///< `rank 0: Allreduce: operator 'hypot'`
  std::int64_t element = 0;

  Function(PyOperator by, nb::handle type, std::string name)
      : op(std::move(by)),
        dtype(nb::borrow(type)),
        from_memory(nb::module_::import_("numpy").attr("frombuffer")),
        called(std::move(name)),
        element(nb::cast<std::int64_t>(type.attr("itemsize"))) {}
  ~Function() {
    if (Py_IsInitialized() == 0) {  // nothing can be given back any more
      for (nb::object* object : {&op.function, &dtype, &from_memory}) object->release();
      return;
    }
    const Locked locked;
    for (nb::object* object : {&op.function, &dtype, &from_memory}) object->reset();
  }
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
};

std::string text_of(nb::handle value) {
  return nb::cast<std::string>(nb::str(value));
}

/// Throws what is raised here, as `tasuki.Error` with the function's own exception as its cause.
[[noreturn]] void failed(const Function& function, nb::python_error& error) {
  std::string text = "an exception without a text";
  try {
    const std::string said = text_of(error.value());
    text = kind_of(error.value()) + (said.empty() ? "" : ": " + said);
  } catch (const std::exception&) {  // its __str__ raised
    PyErr_Clear();
  }
  text = fmt::format("{}: its function raised {}", function.called, text);
  // The frames' variables may be arrays over memory that the operation gives back.
  if (error.traceback().is_valid()) nb::module_::import_("traceback").attr("clear_frames")(error.traceback());
  if (!error.matches(PyExc_Exception)) throw FunctionFailed(error, text);  // KeyboardInterrupt, SystemExit
  try {
    nb::raise_from(error, nb::module_::import_("tasuki._core").attr("Error"), "%s", text.c_str());
  } catch (const nb::python_error& chained) {
    throw FunctionFailed(chained, text);
  }
}

/// Calls it with arrays over both operands, which are of no use afterwards.
void call(const Function& function, const void* right, void* left, std::int64_t count) {
  const auto bytes = static_cast<Py_ssize_t>(count * function.element);
  const auto view = [&](const void* memory, int access) {
    // Without PyBUF_WRITE nothing is written.
    return nb::steal(PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(memory)), bytes, access));
  };
  const nb::object views[] = {view(left, PyBUF_WRITE), view(right, PyBUF_READ)};
  for (const nb::object& each : views)
    if (!each.is_valid()) nb::raise_python_error();
  nb::object into = function.from_memory(views[0], function.dtype);
  nb::object other = function.from_memory(views[1], function.dtype);
  const nb::weakref arrays[] = {nb::weakref(into), nb::weakref(other)};
  if (function.op.ufunc) {
    (void)function.op.function(into, other, into);
  } else if (const nb::object result = function.op.function(into, other); !result.is_none()) {
    throw Error(fmt::format(
        "{}: its function returned a {}; it must put the result into its first argument, as into[...] = ..., and "
        "return None",
        function.called, kind_of(result)));
  }
  into.reset();
  other.reset();
  for (const nb::weakref& array : arrays)  // that is still there: the function has kept it, or a view, which holds it
    if (!array().is_none())
      throw Error(
          fmt::format("{}: its function keeps an array that it was given; copy what is needed later", function.called));
}

void combine(const Function& function, const void* right, void* left, std::int64_t count) {
  const Locked locked;
  const Owner::InFunction inside;
  const nb::error_scope before;  // of the thread that drives the operation
  try {
    call(function, right, left, count);
  } catch (nb::python_error& error) {
    failed(function, error);
  }
}

/// The name of a function that was given without one.
std::string name_of_function(nb::handle function) {
  const nb::object name = nb::getattr(function, "__name__", nb::none());
  std::string text;
  if (nb::try_cast(name, text) && !text.empty() && text != "<lambda>") return text;
  throw Error(
      fmt::format("argument 'function' is {}, which has no name; say what plans and errors shall call it: "
                  "tasuki.Operator(function, name='...')",
                  shown(function)));
}

/// Throws `Error` if it cannot be called with two arguments, as far as Python can tell.
void check_signature(nb::handle function, const std::string& name) {
  nb::object signature;
  try {
    signature = nb::module_::import_("inspect").attr("signature")(function);
  } catch (const nb::python_error&) {
    return;  // made by a compiler: nobody knows
  }
  try {
    signature.attr("bind")(nb::none(), nb::none());
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("argument 'function' ('{}') cannot be called as {}(into, other): {}", name, name,
                            text_of(error.value())));
  }
}

bool is_ufunc(nb::handle function) {
  return nb::isinstance(function, nb::module_::import_("numpy").attr("ufunc"));
}

PyOperator operator_of(nb::handle function, nb::handle name, bool commutes) {
  if (PyCallable_Check(function.ptr()) == 0)
    throw nb::type_error(
        fmt::format("argument 'function' is {}; it must be callable as function(into, other)", shown(function))
            .c_str());
  PyOperator op;
  op.function = nb::borrow(function);
  op.commutes = commutes;
  op.ufunc = is_ufunc(function);
  if (name.is_none()) {
    op.name = name_of_function(function);
  } else if (!nb::isinstance<nb::str>(name)) {
    throw nb::type_error(fmt::format("argument 'name' is {}; it must be a str", shown(name)).c_str());
  } else {
    if (!nb::try_cast(name, op.name))
      throw Error(fmt::format(
          "argument 'name' is {}, which cannot be written in UTF-8: it has halves of surrogate pairs", shown(name)));
    if (op.name.empty()) throw Error("argument 'name' is empty; say what plans and errors shall call the operator");
  }
  if (!op.ufunc) {
    check_signature(function, op.name);
  } else if (nb::cast<int>(function.attr("nin")) != 2 || nb::cast<int>(function.attr("nout")) != 1) {
    throw Error(fmt::format("argument 'function' is the ufunc '{}' with {} inputs and {} outputs; it must have 2 and 1",
                            op.name, nb::cast<int>(function.attr("nin")), nb::cast<int>(function.attr("nout"))));
  }
  return op;
}

/// Whether a ufunc gives elements of the type that it takes.
void check_type(const PyOperator& op, nb::handle dtype) {
  try {
    const nb::object none = nb::module_::import_("numpy").attr("empty")(0, dtype);
    (void)op.function(none, none, none);
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("argument 'op' is '{}', which does not combine elements of {} to such: {}", op.name,
                            text_of(dtype), text_of(error.value())));
  }
}

}  // namespace

Operator operator_from(nb::handle op, nb::handle dtype, const Context& context, const std::string& operation) {
  if (std::string name; nb::isinstance<nb::str>(op)) {
    if (!nb::try_cast(op, name)) name = shown(op);  // surrogates
    return reduce_op_from_string(name);
  }
  PyOperator own;
  if (nb::isinstance<PyOperator>(op)) {
    own = inside<PyOperator>(op);
  } else if (PyCallable_Check(op.ptr()) != 0) {
    own = operator_of(op, nb::none(), true);
  } else {
    throw nb::type_error(
        fmt::format("argument 'op' is {}; it must be the name of an operator, a tasuki.Operator, or a function of two "
                    "arrays",
                    shown(op))
            .c_str());
  }
  const std::string name = own.name;
  const bool commutes = own.commutes;
  if (own.ufunc && !dtype.is_none()) check_type(own, dtype);
  const nb::object type =
      dtype.is_none() ? nb::module_::import_("numpy").attr("dtype")("u1") : nb::borrow(dtype);  // nothing is combined
  const auto function = std::make_shared<const Function>(
      std::move(own), type, fmt::format("rank {}: {}: operator '{}'", context.rank(), operation, name));
  return {name,
          [function](const void* right, void* left, std::int64_t count) { combine(*function, right, left, count); },
          commutes};
}

void bind_operators(nb::module_& m) {
  nb::class_<PyOperator>(
      m, "Operator",
      R"(An operator of reductions: a function of two arrays, `into` and `other`, of equal length and of the reduction's type.

It puts `into op other` into `into`, element by element, and returns None; `into` comes from the lower rank where the operator
does not commute. Or a ufunc of NumPy with two inputs and one output. It must be associative. It is called any number of
times, for parts of the vector: once for each piece that is contiguous. It keeps neither array and uses nothing of Tasuki.
In engine 'thread' a thread of Tasuki's calls it, and waits for the interpreter's lock. On host memory only.

What it raises, `start`, `test` or `wait` of this rank raises as the cause of a `tasuki.Error`; the context has then failed,
and the other ranks hear of it.)")
      .def(
          "__init__",
          [](PyOperator* self, nb::handle function, nb::handle name, Truth commutes) {
            new (self) PyOperator(operator_of(function, name, commutes));
          },
          nb::arg("function"), nb::kw_only(), nb::arg("name") = nb::none(), nb::arg("commutes") = true,
          nb::sig("def __init__(self, function: Callable[[NDArray[Any], NDArray[Any]], Any], *, "
                  "name: str | None = None, commutes: Truth = True) -> None"),
          R"(Local. name: what plans and errors call it, the same on all ranks; None: the function's own.
commutes: False makes reductions combine in rank order.)")
      .def_prop_ro("name", [](const PyOperator& op) { return op.name; })
      .def_prop_ro("commutes", [](const PyOperator& op) { return op.commutes; })
      .def_prop_ro(
          "function", [](const PyOperator& op) { return op.function; },
          nb::sig("def function(self) -> Callable[[NDArray[Any], NDArray[Any]], Any]"))
      .def("__repr__", [](const PyOperator& op) { return fmt::format("<tasuki.Operator '{}'>", op.name); });
}

}  // namespace tasuki::python
