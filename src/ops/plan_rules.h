// What the shape rules of several ops share.
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace fairway {

// Another shape of the same type.
inline Spec like(const Tensor& x, Shape shape) { return {shape, x.spec.dtype}; }

double product_flops(int64_t m, int64_t n, int64_t k);
size_t bytes_of(const Tensor& like_this, int64_t count);

// Each throws "[op] what must …" unless it holds.
void require_matrix(const Tensor& w, int64_t columns, std::string_view op, const char* what);
void require_same(const Tensor& a, const Tensor& b, std::string_view op, const char* what);
void require_numel(const Tensor& x, int64_t count, std::string_view op, const char* what);
void require_indices(const Tensor& x, int64_t count, std::string_view op, const char* what);
void require_square(const Tensor& matrix, int64_t side, std::string_view op, const char* what);
void require_doubles(const Tensor& tensor, int64_t count, std::string_view op, const char* what);
void require_same_count(const Tensor& a, const Tensor& b, std::string_view op, const char* what);
void require_scalars(const Tensor& scalars, std::string_view op);
void require_factor(const Tensor& factor, std::string_view op);
void require_bank(const Tensor& bank, std::string_view op);

}  // namespace fairway
