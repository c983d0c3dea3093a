// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The numbers of Perfetto's messages that a trace uses (protos/perfetto/trace in its sources).
namespace moka::trace::perfetto {

enum Trace : uint32_t { kPacket = 1 };
enum TracePacket : uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
  kFirstOnSequence = 87,
};
enum SequenceFlags : uint32_t { kStateCleared = 1, kNeedsState = 2 };
enum TrackDescriptor : uint32_t {
  kUuid = 1,
  kTrackName = 2,
  kProcess = 3,
  kParent = 5,
  kTrackCounter = 8,
  kChildOrdering = 11,
  kRank = 12,
  kDescription = 14
};
enum ChildOrdering : uint32_t { kExplicit = 3 };
enum ProcessDescriptor : uint32_t { kPid = 1, kCommandLine = 2, kProcessName = 6 };
enum CounterDescriptor : uint32_t { kUnit = 3 };
enum CounterUnit : uint32_t { kUnitCount = 2, kUnitBytes = 3 };
enum TrackEvent : uint32_t {
  kCategory = 3,
  kAnnotation = 4,
  kType = 9,
  kEventName = 10,
  kTrack = 11,
  kCounterValue = 30
};
enum EventType : uint32_t { kBegin = 1, kEnd = 2, kCounter = 4 };
enum InternedData : uint32_t { kCategories = 1, kNames = 2, kAnnotationNames = 3, kAnnotationTexts = 29 };
enum Interned : uint32_t { kId = 1, kText = 2 };
enum DebugAnnotation : uint32_t { kAnnotationName = 1, kInteger = 4, kString = 6, kPlainName = 10, kTextId = 17 };

}  // namespace moka::trace::perfetto
