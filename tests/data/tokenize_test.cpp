#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "data/manifest.h"
#include "data/scratch_folder.h"
#include "data/tools.h"
#include "tokenizer/byte_tables.h"
#include "tokenizer/shared_data.h"

namespace fairway::data {
namespace {

TEST(TokenizeReal, GivesTheOfficialTokensAndBytes) {
  const auto text = shared_folder() / "data" / "fineweb_val_prefix.jsonl.xz";
  SKIP_WITHOUT(text);
  for (const int vocab : {1024, 4096, 8192}) {
    const ScratchFolder folder;
    TokenizeOptions options;
    options.inputs = {text};
    options.tokenizer = shared_folder() / "tokenizers" / ("fineweb_" + std::to_string(vocab) + "_bpe.model");
    options.out = folder / "out";
    options.shards = 1;
    const TokenizeResult result = tokenize(options);
    EXPECT_EQ(result.documents, 902U);
    EXPECT_EQ(result.bytes, 2504867U);
    const ShardSet shards = ShardSet::open_train(options.out);
    const ByteTables tables = make_byte_tables(Tokenizer::load(options.out / "tokenizer.model"));
    EXPECT_EQ(tables.count(shards.read_all()), 2504867);
    if (vocab != 1024) continue;
    EXPECT_EQ(result.tokens, 1040298U);
    EXPECT_EQ(sha256_of_file(options.out / "fineweb_train_000000.bin"),
              "313c77df386fb830c3142372cc5009a252d6d25b57e2bf3864abee433e79af03");
    EXPECT_EQ(read_manifest(options.out)->shards.at(0).sha256, sha256_of_file(options.out / "fineweb_train_000000.bin"));
  }
}

}  // namespace
}  // namespace fairway::data
