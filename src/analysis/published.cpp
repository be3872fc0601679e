#include "analysis/published.h"

#include <array>

namespace fairway {
namespace {

constexpr std::array<int64_t, 3> kSeeds549{1337, 42, 2025}, kSeeds1019{314, 42, 999}, kSeeds1105{314, 999, 1337},
    kSeedsFinal{42, 314, 1337}, kSeeds1493{42, 314, 999}, kSeeds1514{0, 42, 1234}, kSeeds1855{42, 0, 1234};
constexpr std::array<int64_t, 5> kFiveSeeds{1, 42, 1234, 1337, 2025};

constexpr std::array k549Bpb{1.11922988, 1.12002032, 1.11888882};
constexpr std::array k1019Nats{1.88276292, 1.88156874, 1.88220393}, k1019Bpb{1.11508120, 1.11437394, 1.11475014};
constexpr std::array kKernelsNats{1.8798, 1.8800, 1.8820};
constexpr std::array kMidNats{1.87802, 1.87821, 1.87910}, kMidBpb{1.1123, 1.1124, 1.1129};
constexpr std::array kSlotNats{1.87174, 1.87187, 1.87306};
constexpr std::array kFinalBpb{1.0995, 1.0977, 1.0990}, kTiltedBpb{1.0970, 1.0952, 1.0965};
constexpr std::array k1394Bpb{1.08554, 1.08664, 1.08463, 1.08554, 1.08578};
constexpr std::array k1420Bpb{1.08271, 1.08391, 1.08344, 1.08301, 1.08309};
constexpr std::array k1420TiltBpb{1.08256, 1.08376, 1.08330, 1.08287, 1.08295};
constexpr std::array k1493Bpb{1.08079, 1.08103, 1.08118};
constexpr std::array k1514Bpb{1.07928, 1.07997, 1.08025}, k1514PlainBpb{1.08102, 1.08167, 1.08194};
constexpr std::array k1855Bpb{1.05989454, 1.06124613, 1.06208695};

constexpr OfficialTokens kSp1024{"sp1024", 62'021'632, 0}, kSp4608{"sp4608", 44'527'616, 44'528'743},
    kSp8192{"sp8192", 40'540'160, 0}, kCaseOps{"sp8192 CaseOps", 47'851'520, 0};

const std::array<PublishedScores, 14> kPublished{{
    {"pr549", "score-first TTT", &kSp1024, kSeeds549, {}, k549Bpb},
    {"pr1019", "full GPTQ, sliding", &kSp1024, kSeeds1019, k1019Nats, k1019Bpb},
    {"pr1105-kernels", "its own kernels on #1019's model", &kSp1024, kSeeds1019, kKernelsNats, {}},
    {"pr1105-mid", "without SLOT", &kSp1024, kSeeds1105, kMidNats, kMidBpb},
    {"pr1105-slot", "with SLOT, which breaks the rules", &kSp1024, kSeeds1105, kSlotNats, {}},
    {"pr1105-sliding", "final, sliding", &kSp4608, kSeedsFinal, {}, kFinalBpb},
    {"pr1105-tilted", "final, with the leaking n-gram tilt", &kSp4608, kSeedsFinal, {}, kTiltedBpb},
    {"pr1394", "sp8192", &kSp8192, kFiveSeeds, {}, k1394Bpb},
    {"pr1420-sliding", "sliding", &kSp8192, kFiveSeeds, {}, k1420Bpb},
    {"pr1420", "legal n-gram tilt", &kSp8192, kFiveSeeds, {}, k1420TiltBpb},
    {"pr1493", "TTT", &kSp8192, kSeeds1493, {}, k1493Bpb},
    {"pr1514", "TTT", &kSp8192, kSeeds1514, {}, k1514Bpb},
    {"pr1514-sliding", "before TTT", &kSp8192, kSeeds1514, {}, k1514PlainBpb},
    {"pr1855", "phased LoRA TTT", &kCaseOps, kSeeds1855, {}, k1855Bpb},
}};

}  // namespace

std::span<const PublishedScores> published_scores() { return kPublished; }

const PublishedScores* find_published(std::string_view name) {
  for (const PublishedScores& entry : kPublished) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace fairway
