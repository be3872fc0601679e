// Included behind exact_words.inl by each instruction set without products of bytes. Several vectors against a row of tiles in
// sums of 16-bit pairs: weights are numbers of 16 bits, and an element of a vector has two digits of 12 bits, so that sums over
// fewer than 8,192 columns stay below 2^31. The whole number that they make is the one of three digits of 8 bits.

constexpr int kSides = 2;                                                                    // digits of 12 bits
constexpr int64_t kPairBytes = int64_t{kGroupRows} * kSides * 2 * int64_t{sizeof(int16_t)};  // of two columns of a group
constexpr int kSideBits = 12;

// How many vectors' sums the registers hold.
#if defined(__AVX512BW__)
constexpr int kRowsAtOnce = 8;
#elif defined(__AVX2__)
constexpr int kRowsAtOnce = 2;
#else
constexpr int kRowsAtOnce = 1;
#endif

static void arrange_words(const int8_t* const* digits, int64_t cols, int row, int8_t* group) {
  auto* to = reinterpret_cast<int16_t*>(group + row * kSides * 2 * int64_t{sizeof(int16_t)});
  constexpr int64_t kStep = kPairBytes / int64_t{sizeof(int16_t)};
  for (int64_t i = 0; i < cols; ++i) {
    const int32_t whole = digits[2][i] * 65536 + digits[1][i] * 256 + digits[0][i];
    const int32_t low = ((whole + (1 << (kSideBits - 1))) & ((1 << kSideBits) - 1)) - (1 << (kSideBits - 1));
    int16_t* own = to + i / 2 * kStep + i % 2;
    own[0] = static_cast<int16_t>(low);
    own[2] = static_cast<int16_t>((whole - low) >> kSideBits);
  }
}

// Columns 2p and 2p + 1 of sixteen rows side by side.
template <cpu::PackedForm kForm>
static void unpack_word_tiles(const uint8_t* tiles, int64_t count, int16_t* words) {
  constexpr int kQuad = 64;  // bytes: four columns of sixteen rows
  for (int64_t c = 0; c < count; ++c, tiles += cpu::packed_tile_bytes(kForm))
    for (int quad = 0; quad < 4; ++quad, words += kQuad) {
      int16_t weights[kQuad];
      for (int i = 0; i < kQuad; ++i) {
        int weight =
            kForm == cpu::PackedForm::bytes ? tiles[quad * kQuad + i] : tiles[quad / 2 * kQuad + i] >> (quad % 2 * 4) & 15;
        if constexpr (kForm == cpu::PackedForm::six) weight |= (tiles[2 * kQuad + i] >> (2 * quad) & 3) << 4;
        weights[i] = static_cast<int16_t>(weight - cpu::packed_offset(kForm));
      }
      for (int i = 0; i < 16; ++i) {
        __builtin_memcpy(words + 2 * i, weights + 4 * i, 2 * sizeof(int16_t));
        __builtin_memcpy(words + kQuad / 2 + 2 * i, weights + 4 * i + 2, 2 * sizeof(int16_t));
      }
    }
}

static void unpack_words(const cpu::PackedRows& w, int64_t tile, uint8_t* weights) {
  auto* words = reinterpret_cast<int16_t*>(weights);
  const int64_t count = w.col_tiles();
  const uint8_t* tiles = w.data + tile * count * cpu::packed_tile_bytes(w.form);
  if (w.form == cpu::PackedForm::six)
    unpack_word_tiles<cpu::PackedForm::six>(tiles, count, words);
  else if (w.form == cpu::PackedForm::bytes)
    unpack_word_tiles<cpu::PackedForm::bytes>(tiles, count, words);
  else
    unpack_word_tiles<cpu::PackedForm::nibbles>(tiles, count, words);
  if (w.outliers == nullptr) return;
  for (uint32_t o = tile == 0 ? 0 : w.outlier_end[tile - 1]; o < w.outlier_end[tile]; ++o) {
    const cpu::PackedOutlier& outlier = w.outliers[o];
    int16_t& weight = words[outlier.col / 2 * 32 + outlier.row * 2 + outlier.col % 2];
    weight = static_cast<int16_t>(weight + outlier.excess);
  }
}

// The sums of some vectors, each digit apart.
template <int kRows>
static void sum_words(const int16_t* words, int64_t pairs, const int16_t* digits, int32_t (*out)[kSides][kWide]) {
  PairSums sums[kRows][kSides] = {};
  for (int64_t pair = 0; pair < pairs; ++pair, words += 2 * kWide, digits += kPairBytes / int64_t{sizeof(int16_t)}) {
    const Words weights = load_words(words);
    for (int r = 0; r < kRows; ++r)
      for (int side = 0; side < kSides; ++side) sums[r][side].add(weights, pair_at(digits + (r * kSides + side) * 2));
  }
  for (int r = 0; r < kRows; ++r)
    for (int side = 0; side < kSides; ++side) sums[r][side].store(out[r][side]);
}

static void multiply_words(const cpu::PackedRows& w, int64_t tile, const uint8_t* weights, const DigitGroup& group) {
  const auto *words = reinterpret_cast<const int16_t*>(weights), *digits = reinterpret_cast<const int16_t*>(group.digits);
  const int64_t pairs = w.col_tiles() * cpu::kTileCols / 2, first = tile * cpu::kTileRows, left = w.rows - first;
  for (int row = 0; row < group.rows; row += kRowsAtOnce) {  // rows beyond the last are of no account
    alignas(64) int32_t sums[kRowsAtOnce][kSides][kWide];
    sum_words<kRowsAtOnce>(words, pairs, digits + row * kSides * 2, sums);
    for (int r = row; r < row + kRowsAtOnce && r < group.rows; ++r)
      for (int64_t i = 0; i < 16 && i < left; ++i) {
        const double low = sums[r - row][0][i], high = sums[r - row][1][i];
        const double whole = high * (1 << kSideBits) + low;  // below 2^53: exact
        group.y[r][first + i] = static_cast<float>(whole * (static_cast<double>(w.scale[first + i]) * group.units[r]));
      }
  }
}

constexpr GroupedKernels kGroupedWords{
    .most_cols = 8191, .arrange = arrange_words, .unpack = unpack_words, .multiply = multiply_words};
