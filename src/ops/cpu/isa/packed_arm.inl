// What the packed kernels for Arm share; included inside a namespace of its own by each. Arm multiplies signed bytes with signed
// ones, so whole bytes come as q instead of q + 128, and the offset is put back once for a row of tiles.

// Rows 4·group to 4·group + 3 of a tile: four vectors of four columns each.
template <PackedForm kForm>
static inline void unpack(const uint8_t* tile, int group, int8x16_t (&v)[4]) {
  tile += 16 * group;
  if constexpr (kForm == PackedForm::bytes) {
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) v[quad] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(tile + 64 * quad), vdupq_n_u8(128)));
    return;
  }
  const uint8x16_t nibble = vdupq_n_u8(15), a = vld1q_u8(tile), b = vld1q_u8(tile + 64);
  uint8x16_t low[4] = {vandq_u8(a, nibble), vshrq_n_u8(a, 4), vandq_u8(b, nibble), vshrq_n_u8(b, 4)};
  if constexpr (kForm == PackedForm::six) {
    const uint8x16_t top = vdupq_n_u8(0x30), h = vld1q_u8(tile + 128);
    low[0] = vorrq_u8(low[0], vandq_u8(vshlq_n_u8(h, 4), top)), low[1] = vorrq_u8(low[1], vandq_u8(vshlq_n_u8(h, 2), top));
    low[2] = vorrq_u8(low[2], vandq_u8(h, top)), low[3] = vorrq_u8(low[3], vandq_u8(vshrq_n_u8(h, 2), top));
  }
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) v[quad] = vreinterpretq_s8_u8(low[quad]);
}

static inline void add_offsets(int64_t count, const int8_t* const* digits, int32_t (*sums)[16]) {
  for (int place = 0; place < 3; ++place) {
    int32x4_t total = vdupq_n_s32(0);
    for (int64_t c = 0; c < count; ++c) total = vpadalq_s16(total, vpaddlq_s8(vld1q_s8(digits[place] + c * kTileCols)));
    const int32_t offset = packed_offset(PackedForm::bytes) * vaddvq_s32(total);
    for (int i = 0; i < 16; ++i) sums[place][i] += offset;
  }
}
