// The C library as a Python module, thinly: python/fairway says what users see. Arrays are made there and filled here.
#include <fairway/fairway.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace {

// Their Python classes are made in the module.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct WorkError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void need(fairway_status status) {
  if (status == FAIRWAY_BAD_INPUT) throw InputError(fairway_error());
  if (status != FAIRWAY_OK) throw WorkError(fairway_error());
}

// A path that goes to the system ends at a zero byte.
const char* path_of(const nb::bytes& path) {
  if (std::string_view(path.c_str(), path.size()).find('\0') != std::string_view::npos)
    throw InputError("path: has a zero byte in it");
  return path.c_str();
}

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

nb::str text_of(const char* bytes, size_t size) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(size), "replace"));
}

// What a text is told to while it is made. An exception of Python's waits until the C library has returned.
struct Listener {
  nb::object on_text;
  std::string text;
  std::exception_ptr error = nullptr;

  static int told(void* context, int32_t, const char* text, size_t bytes) {
    Listener& listener = *static_cast<Listener*>(context);
    const nb::gil_scoped_acquire held;
    try {
      listener.text.append(text, bytes);
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (bytes == 0 || listener.on_text.is_none()) return 0;
      return listener.on_text(text_of(text, bytes)).is(nb::handle(Py_False)) ? 1 : 0;
    } catch (...) {
      listener.error = std::current_exception();
      return 1;
    }
  }
};

class Artifact {
 public:
  explicit Artifact(fairway_artifact* opened) : opened_(opened, &fairway_close) {}

  static Artifact open(const nb::bytes& path, int threads) {
    fairway_artifact* opened = nullptr;
    const char* name = path_of(path);
    const nb::gil_scoped_release others;
    need(fairway_open(name, threads, &opened));
    return Artifact(opened);
  }
  static Artifact open_bytes(const nb::bytes& bytes, int threads) {
    fairway_artifact* opened = nullptr;
    const char* data = bytes.c_str();
    const size_t size = bytes.size();
    const nb::gil_scoped_release others;
    need(fairway_open_bytes(data, size, threads, &opened));
    return Artifact(opened);
  }

  nb::str describe() const {
    const char* json = nullptr;
    need(fairway_describe(opened_.get(), &json));
    return nb::str(json);
  }
  size_t vocab() const {
    size_t vocab = 0;
    need(fairway_vocab(opened_.get(), &vocab));
    return vocab;
  }
  nb::list tensors() const {
    size_t count = 0;
    need(fairway_tensor_count(opened_.get(), &count));
    nb::list all;
    for (size_t i = 0; i < count; ++i) {
      fairway_tensor t;
      need(fairway_tensor_at(opened_.get(), i, &t));
      nb::list shape;
      for (int d = 0; d < t.dimensions; ++d) shape.append(t.shape[d]);
      all.append(nb::make_tuple(t.name, nb::tuple(shape), t.role, t.coding, t.bits, t.correction_rank, t.rows, t.cols));
    }
    return all;
  }
  void floats(size_t index, const Array<float>& out) const {
    const nb::gil_scoped_release others;
    need(fairway_floats(opened_.get(), index, out.data(), out.size()));
  }
  void integers(size_t index, const Array<int8_t>& q, const Array<float>& rows, const Array<float>& columns) const {
    fairway_tensor t;
    need(fairway_tensor_at(opened_.get(), index, &t));
    if (q.size() != static_cast<size_t>(t.count) || rows.size() != static_cast<size_t>(t.rows) ||
        columns.size() != static_cast<size_t>(t.cols))
      throw InputError("integers: the arrays have other sizes than the tensor");
    need(fairway_integers(opened_.get(), index, q.data(), rows.data(), columns.data()));
  }
  void logits(const Array<const int32_t>& tokens, const Array<float>& out) const {
    const nb::gil_scoped_release others;
    need(fairway_logits(opened_.get(), tokens.data(), tokens.size(), out.data(), out.size()));
  }
  void set_tokenizer(const nb::bytes& path) const { need(fairway_set_tokenizer(opened_.get(), path_of(path))); }
  std::vector<int32_t> encode(const nb::bytes& text) const {
    std::vector<int32_t> tokens(text.size() + 1);
    size_t count = 0;
    need(fairway_encode(opened_.get(), text.c_str(), text.size(), tokens.data(), tokens.size(), &count));
    tokens.resize(count);
    return tokens;
  }
  nb::str generate(const nb::bytes& prompt, const fairway_sampling& sampling, const nb::object& on_text) const {
    Listener listener{on_text, {}};
    const char* begin = prompt.c_str();
    const size_t size = prompt.size();
    {
      const nb::gil_scoped_release others;
      need(fairway_generate(opened_.get(), begin, size, &sampling, Listener::told, &listener));
    }
    if (listener.error) std::rethrow_exception(listener.error);
    return text_of(listener.text.data(), listener.text.size());
  }
  std::vector<int32_t> go_on(const Array<const int32_t>& tokens, const fairway_sampling& sampling) const {
    constexpr int64_t kMost = int64_t{1} << 24;  // what is beyond is refused below
    std::vector<int32_t> made(static_cast<size_t>(std::max<int64_t>(1, std::min(sampling.tokens, kMost))));
    size_t count = made.size();
    const nb::gil_scoped_release others;
    need(fairway_continue(opened_.get(), tokens.data(), tokens.size(), &sampling, made.data(), &count));
    made.resize(count);
    return made;
  }

 private:
  std::unique_ptr<fairway_artifact, void (*)(fairway_artifact*)> opened_;
};

}  // namespace

NB_MODULE(_border, m) {
  nb::exception<InputError>(m, "InputError", PyExc_ValueError);
  nb::exception<WorkError>(m, "WorkError", PyExc_RuntimeError);
  m.def("version", &fairway_version);
  nb::class_<fairway_sampling>(m, "Sampling")
      .def("__init__", [](fairway_sampling* self) { new (self) fairway_sampling(fairway_default_sampling()); })
      .def_rw("tokens", &fairway_sampling::tokens)
      .def_rw("context", &fairway_sampling::context)
      .def_rw("temperature", &fairway_sampling::temperature)
      .def_rw("top_k", &fairway_sampling::top_k)
      .def_rw("top_p", &fairway_sampling::top_p)
      .def_rw("seed", &fairway_sampling::seed);
  nb::class_<Artifact>(m, "Artifact")
      .def_static("open", &Artifact::open)
      .def_static("open_bytes", &Artifact::open_bytes)
      .def("describe", &Artifact::describe)
      .def("vocab", &Artifact::vocab)
      .def("tensors", &Artifact::tensors)
      .def("floats", &Artifact::floats)
      .def("integers", &Artifact::integers)
      .def("logits", &Artifact::logits)
      .def("set_tokenizer", &Artifact::set_tokenizer)
      .def("encode", &Artifact::encode)
      .def("generate", &Artifact::generate, nb::arg("prompt"), nb::arg("sampling"), nb::arg("on_text").none())
      .def("go_on", &Artifact::go_on);
}
