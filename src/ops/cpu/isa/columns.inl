// Column loops for row kernels: one body, instantiated for whole vectors, for four lanes and for one, so that any width and
// any alignment works. Gradients that are absent are null pointers.

typedef float quad __attribute__((vector_size(16)));

template <class T>
FAIRWAY_INLINE T load(const float* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
FAIRWAY_INLINE void store(float* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

template <class T>
FAIRWAY_INLINE void put(float* to, T value, bool add) {
  store<T>(to, add ? load<T>(to) + value : value);
}

// body(c, T{}) for T = vec, then quad, then float; c is the first column of the piece.
template <class Body>
FAIRWAY_INLINE void for_columns(int64_t columns, Body&& body) {
  int64_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) body(c, vec{});
  for (; c + 4 <= columns; c += 4) body(c, quad{});
  for (; c < columns; ++c) body(c, 0.0f);
}

// A sum over columns, one accumulator per lane, added up as a tree.
struct Sum {
  vec wide{};
  quad four{};
  float single = 0;

  template <class T>
  inline __attribute__((always_inline)) void add(T value) {
    if constexpr (sizeof(T) == sizeof(vec))
      wide += value;
    else if constexpr (sizeof(T) == sizeof(quad))
      four += value;
    else
      single += value;
  }
  inline __attribute__((always_inline)) float total() const {
    float lanes[kLanes];
    __builtin_memcpy(lanes, &wide, sizeof(lanes));
    for (int step = kLanes / 2; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) lanes[i] += lanes[i + step];
    return lanes[0] + ((four[0] + four[2]) + (four[1] + four[3])) + single;
  }
};

// Σ a·b in double, for sums that end in one number and may cancel.
typedef float half_vec __attribute__((vector_size(2 * kLanes)));
typedef double wide_vec __attribute__((vector_size(4 * kLanes)));

FAIRWAY_INLINE wide_vec load_wide(const float* from) {
  half_vec value;
  __builtin_memcpy(&value, from, sizeof(value));
  return __builtin_convertvector(value, wide_vec);
}

FAIRWAY_INLINE double wide_dot(const float* a, const float* b, int64_t count) {
  wide_vec even{}, odd{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    even += load_wide(a + i) * load_wide(b + i);
    odd += load_wide(a + i + kLanes / 2) * load_wide(b + i + kLanes / 2);
  }
  double total = 0;
  for (int lane = 0; lane < kLanes / 2; ++lane) total += even[lane] + odd[lane];
  for (; i < count; ++i) total += static_cast<double>(a[i]) * b[i];
  return total;
}

FAIRWAY_INLINE float* base_of(const Tensor& t) { return t.present ? reinterpret_cast<float*>(t.data) : nullptr; }
FAIRWAY_INLINE float* row_of(const Tensor& t, int64_t row, int64_t columns) {
  return t.present ? reinterpret_cast<float*>(t.data) + row * columns : nullptr;
}
FAIRWAY_INLINE const int32_t* indices_of(const Tensor& t) { return reinterpret_cast<const int32_t*>(t.data); }
FAIRWAY_INLINE int64_t dim_of(const Tensor& t, int axis) {
  return reinterpret_cast<const int64_t*>(&t.spec.shape.dims)[axis];  // std::array's own functions stay out of these units
}
FAIRWAY_INLINE int64_t columns_of(const Tensor& t) { return dim_of(t, t.spec.shape.rank - 1); }

FAIRWAY_INLINE float inverse_rms(float squares, int64_t columns, double eps) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(squares) / static_cast<double>(columns) + eps));
}
