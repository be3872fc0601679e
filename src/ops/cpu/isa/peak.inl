// Twelve or more independent chains of multiply-adds in registers: what the machine does when memory plays no part.
double fma_burst(int64_t rounds) {
  constexpr int kChains = 12;
  vec chain[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) chain[i] = splat(static_cast<float>(i));
  vec factor = splat(0.75f), term = splat(0.25f);
  // Empty, but it hides the values, so the loop can be neither folded nor dropped.
  __asm__ volatile("" : "+" FAIRWAY_VECTOR_REGISTER(factor), "+" FAIRWAY_VECTOR_REGISTER(term));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) __asm__ volatile("" : : FAIRWAY_VECTOR_REGISTER(chain[i]));
  return 2.0 * kChains * kLanes * static_cast<double>(rounds);
}
