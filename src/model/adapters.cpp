#include "model/adapters.h"

#include "model/shape/model_shape.h"

namespace fairway {

namespace {

constexpr const char* kSiteNames[] = {"q", "k", "v", "o", "mlp", "head"};

ParamInfo adapter_row(AdapterSite site, AdapterFactor factor, std::vector<int64_t> shape) {
  const std::string name = std::string("lora.") + kSiteNames[static_cast<size_t>(site)];
  return {.name = name + (factor == AdapterFactor::a ? ".a" : ".b"), .shape = std::move(shape), .adapter = {{site, factor}}};
}

}  // namespace

bool has(const LoraSites& sites, AdapterSite site) {
  switch (site) {
    case AdapterSite::q: return sites.q;
    case AdapterSite::k: return sites.k;
    case AdapterSite::v: return sites.v;
    case AdapterSite::o: return sites.o;
    case AdapterSite::mlp: return sites.mlp;
    case AdapterSite::head: return sites.head;
  }
  return false;
}

std::vector<ParamInfo> adapter_table(const ModelRecipe& model, const LoraSites& sites, bool looped, int64_t rank) {
  const auto passes = static_cast<int64_t>(layer_order(model, looped).layers.size());
  const int64_t width = model.dim, kv = model.kv_dim();
  std::vector<ParamInfo> table;
  const auto add = [&](AdapterSite site, std::vector<int64_t> a, std::vector<int64_t> b) {
    if (!has(sites, site)) return;
    table.push_back(adapter_row(site, AdapterFactor::a, std::move(a)));
    table.push_back(adapter_row(site, AdapterFactor::b, std::move(b)));
  };
  add(AdapterSite::q, {passes, width, rank}, {passes, width, rank});
  add(AdapterSite::k, {passes, width, rank}, {passes, kv, rank});
  add(AdapterSite::v, {passes, width, rank}, {passes, kv, rank});
  add(AdapterSite::o, {passes, rank, width}, {passes, width, rank});
  add(AdapterSite::mlp, {passes, rank, width}, {passes, width, rank});
  add(AdapterSite::head, {width, rank}, {model.vocab, rank});
  return table;
}

}  // namespace fairway
