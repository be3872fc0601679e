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

std::vector<ParamInfo> adapter_table(const ModelRecipe& model, const AdapterShape& shape, bool looped) {
  const auto passes = static_cast<int64_t>(layer_order(model, looped).layers.size());
  const int64_t width = model.dim, kv = model.kv_dim(), documents = shape.documents, rank = shape.rank;
  std::vector<ParamInfo> table;
  const auto add = [&](AdapterSite site, int64_t out) {
    if (!has(shape.sites, site)) return;
    std::vector<int64_t> a{passes, documents, rank, width}, b{passes, documents, out, rank};
    if (site == AdapterSite::head)
      for (auto* factor : {&a, &b}) factor->erase(factor->begin());
    table.push_back(adapter_row(site, AdapterFactor::a, std::move(a)));
    table.push_back(adapter_row(site, AdapterFactor::b, std::move(b)));
  };
  add(AdapterSite::q, width);
  add(AdapterSite::k, kv);
  add(AdapterSite::v, kv);
  add(AdapterSite::o, width);
  add(AdapterSite::mlp, width);
  add(AdapterSite::head, model.vocab);
  return table;
}

}  // namespace fairway
