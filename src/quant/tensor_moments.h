// How strongly the loss depends on each tensor: the mean over tokens of the squared norm of the loss's gradient, which is the
// trace of the tensor's part of the Fisher matrix. With H the second moments of a matrix's inputs and the gradients of its
// outputs taken as alike in all rows, changing W by D costs ½·moment·tr(D·H·Dᵀ)/(rows·tr H) nats a token.
#pragma once

#include <map>
#include <string>

namespace fairway {

using TensorMoments = std::map<std::string, double, std::less<>>;  // by TensorPlan::name(); empty: not measured

}  // namespace fairway
