// exp, sigmoid and tanh on vectors, within about 2 ulp. The polynomials are Chebyshev fits made for this file.

// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2 and e^r = 1 + r + r^2 P(r), |error of P| < 0.2 ulp of the result.
// Above 88.72 the result is infinity, below -87.33 zero.
FAIRWAY_INLINE vec vexp(vec x) {
  const float kRound = 12582912.0f;  // 1.5 * 2^23: adding and subtracting it rounds to the nearest integer
  const vec low = splat(-87.33654f), high = splat(88.72283f);
  vec in = x < low ? low : x;
  in = in > high ? high : in;
  const vec shifted = in * 1.44269504f + kRound;
  const vec n = shifted - kRound;
  const vec r = (in - n * 0.693359375f) - n * -2.12194440e-4f;
  vec p = splat(0.00139337332f);
  p = p * r + 0.00836323538f;
  p = p * r + 0.0416664642f;
  p = p * r + 0.166665766f;
  p = p * r + 0.5f;
  const vec e = p * (r * r) + r + 1.0f;
  // Two factors, since 2^128 is not a float while e^88.72 is.
  const ivec exponent = __builtin_convertvector(n, ivec);
  const ivec half = exponent >> 1;
  const vec scaled = e * reinterpret_cast<vec>((half + 127) << 23) * reinterpret_cast<vec>((exponent - half + 127) << 23);
  const vec top = x > high ? splat(__builtin_inff()) : scaled;
  return x < low ? vec{} : top;
}

// 2^x for -126 <= x < 127 within 2 ulp, zero below: the softmax's, whose scores are scaled to powers of two beforehand.
FAIRWAY_INLINE vec vexp2(vec x) {
  const float kRound = 12582912.0f;
  const vec low = splat(-126.0f);
  const vec in = x < low ? low : x;
  const vec shifted = in + kRound;
  const vec r = in - (shifted - kRound);
  vec p = splat(0.00133908674f);
  p = p * r + 0.00966637369f;
  p = p * r + 0.055503571f;
  p = p * r + 0.240223489f;
  p = p * r + 0.693147188f;
  p = p * r + 1.0f;
  // The low bits of `shifted` hold round(x); moved up they add to the exponent.
  const vec scaled = reinterpret_cast<vec>(reinterpret_cast<ivec>(p) + (reinterpret_cast<ivec>(shifted) << 23));
  return x < low ? vec{} : scaled;
}

FAIRWAY_INLINE vec vsigmoid(vec x) { return 1.0f / (1.0f + vexp(-x)); }

constexpr float kTanhNear = 0.625f;

// tanh for |x| < kTanhNear: x + x^3 Q(x^2).
FAIRWAY_INLINE vec vtanh_near(vec x) {
  const vec u = x * x;
  vec q = splat(0.0022957516f);
  q = q * u + -0.00834688415f;
  q = q * u + 0.0217699233f;
  q = q * u + -0.0539593995f;
  q = q * u + 0.133333042f;
  q = q * u + -0.333333332f;
  return x + x * (u * q);
}

FAIRWAY_INLINE vec vabs(vec x) { return reinterpret_cast<vec>(reinterpret_cast<ivec>(x) & 0x7fffffff); }

// Elsewhere 1 - 2 / (e^2|x| + 1) with the sign put back.
FAIRWAY_INLINE vec vtanh(vec x) {
  const ivec sign = reinterpret_cast<ivec>(x) & static_cast<int32_t>(0x80000000u);
  const vec size = vabs(x), far = 1.0f - 2.0f / (vexp(2.0f * size) + 1.0f);
  return size < splat(kTanhNear) ? vtanh_near(x) : reinterpret_cast<vec>(reinterpret_cast<ivec>(far) | sign);
}

void copy_row(const float* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, load(x + i));
  for (; i < count; ++i) y[i] = x[i];
}
void add_row(const float* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, load(y + i) + load(x + i));
  for (; i < count; ++i) y[i] += x[i];
}
float dot_row(const float* x, const float* y, int64_t count) {
  vec sum{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum += load(x + i) * load(y + i);
  float total = sum_lanes(sum);
  for (; i < count; ++i) total += x[i] * y[i];
  return total;
}

template <vec (*kFunction)(vec)>
void map(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) store_first(y + i, kFunction(load_first(x + i, count - i)), count - i);
}

vec exp_of(vec x) { return vexp(x); }
vec sigmoid_of(vec x) { return vsigmoid(x); }
vec tanh_of(vec x) { return vtanh(x); }
