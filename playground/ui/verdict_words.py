"""The page's words about verdicts: why there is no ratio, why a slot is slower, where answers part, what each choice gave."""

from __future__ import annotations

from ..verdicts import REASONS

_KOREAN_REASONS = {
    "contended": "경주 모드: 한 장치를 나눠 쓰므로 비율을 내지 않습니다",
    "unfinished": "끝까지 가지 않은 실행이 있습니다",
    "no_rate": "속도를 내기에는 토큰이 너무 적습니다",
    "other_model": "모델이 다름: 여기는 {0}, 기준은 {1}",
    "other_dtype": "dtype이 다르고(여기 {0}, 기준 {1}) 다른 것도 다릅니다. 한 번에 하나만 바꾸세요",
    "unequal_work": "작업량이 다름: 여기는 새 토큰 {0}개, 기준은 {1}개; '종료 토큰 무시'를 켜면 길이가 같아집니다",
    "unequal_prompt": "작업량이 다름: 여기는 프롬프트 토큰 {0}개, 기준은 {1}개",
    "other_prompt": "프롬프트의 토큰이 기준과 다릅니다: 템플릿이나 대화 순서가 다름",
    "cold": "준비 운동을 하지 않은 실행이 있습니다",
    "recompiled": "실행 도중 torch가 컴파일해 시간이 섞였습니다. 한 번 더 실행하세요",
    "no_difference": "잴 수 있는 차이 없음: {0}배이며, 기준을 다시 재도 최대 {1} 다릅니다",
    "busy": "장치가 바빴습니다: 실행 중 다른 프로세스가 코어 {1}개 중 {0}개를 썼습니다",
}

VERDICT_WORDS: dict[str, tuple[str, str]] = {
    **{f"why.{key}": (english, _KOREAN_REASONS[key]) for key, english in REASONS.items()},
    "slower": ("Why slower?", "왜 느릴까요?"),
    "slower.no_cache": (
        "without a KV cache every id goes through the whole text again, {0} ids at the end",
        "KV 캐시가 없어 토큰마다 글 전체를 다시 계산합니다(끝에는 {0}토큰)",
    ),
    "slower.half_on_cpu": ("a CPU computes float16 about ten times slower than bfloat16", "CPU의 float16은 bfloat16보다 열 배쯤 느립니다"),
    "slower.low_acceptance": (
        "{0} of the drafts are accepted: a round yields {1} ids and costs {2} plain steps",
        "초안의 {0}만 수락되어 한 라운드에 {1}토큰을 얻고 {2}스텝을 씁니다",
    ),
    "slower.unpacking": (
        "a step reads {0} MB of weights instead of {1} MB and still takes {2} ms instead of {3} ms: unpacking them costs more than "
        "reading less saves",
        "한 스텝에 {1} MB 대신 {0} MB만 읽는데도 {3} ms 대신 {2} ms: 푸는 비용이 덜 읽는 이득보다 큽니다",
    ),
    "slower.math_kernel": ("torch fell back to its math attention kernel", "torch가 math 어텐션 커널로 물러났습니다"),
    "slower.eager": ("eager attention writes out every score instead of fusing the kernel", "eager 어텐션은 커널을 합치지 않고 점수를 모두 씁니다"),
    "slower.packed_cache": ("keys and values of the {0} cache are unpacked at every step", "{0} 캐시의 키와 값을 스텝마다 풉니다"),
    "slower.host": (
        "{0} of the time is Python and bookkeeping between forwards; {1} in the reference",
        "시간의 {0}가 순전파 사이의 파이썬과 부수 작업(기준은 {1})",
    ),
    "time": ("Where the time goes", "시간이 쓰인 곳"),
    "time.prefill": ("prefill", "프리필"),
    "time.draft": ("draft", "초안"),
    "time.verify": ("verify", "검증"),
    "time.decode": ("decode", "디코드"),
    "time.text": ("text", "글자 변환"),
    "time.host": ("host", "호스트"),
    "bandwidth": ("Of copy bandwidth", "복사 대역폭 대비"),
    "bandwidth_why": (
        "Bytes that the target's steps read, as a share of this device's measured copy rate of {0} GB/s (read and written)",
        "본 모델의 스텝이 읽는 바이트를 이 장치에서 잰 복사 속도 {0} GB/s(읽기+쓰기)로 나눈 값",
    ),
    "parting": ("First difference", "첫 차이"),
    "parting.none": ("none", "없음"),
    "parting.none_why": ("The ids are the reference's, all of them", "모든 토큰이 기준과 같습니다"),
    "parting.at": ("id {0} of {1}", "{1}개 중 {0}번째"),
    "parting.ended": (
        "up to there the ids are equal; then one of the answers ends",
        "거기까지 같고, 한쪽 답이 끝납니다",
    ),
    "parting.unweighed": (
        "up to there the ids are equal; tick “Measure quality too” to learn whether rounding decided",
        "거기까지 같습니다. ‘품질도 측정’을 켜면 반올림 때문인지 알 수 있습니다",
    ),
    "parting.tie": (
        "rounding tie: the reference preferred “{0}” to “{1}” by {2} nats, less than its dtype resolves ({3})",
        "반올림 차이: 기준은 “{0}”를 “{1}”보다 {2} nat 선호하나 dtype의 분해능({3})보다 작습니다",
    ),
    "parting.real": (
        "real change: the reference preferred “{0}” to “{1}” by {2} nats, more than its dtype resolves ({3}); this slot by {4}",
        "실제 변화: 기준은 “{0}”를 “{1}”보다 {2} nat 선호하며 dtype의 분해능({3})보다 큽니다. 이 슬롯은 {4}",
    ),
    "parting.text": ("Differences from {0}", "{0}와 다른 부분"),
    "parting.text_why": (
        "Struck through: only in the reference. Underlined: only here.",
        "취소선: 기준에만 있음. 밑줄: 여기에만 있음.",
    ),
    "sweep": ("Sweep: one setting over several values", "훑어보기: 설정 하나를 여러 값으로"),
    "sweep.variable": ("What to vary", "바꿀 설정"),
    "sweep.values": ("Values", "값"),
    "sweep.values_info": (
        "The chosen comparison is benchmarked at each, with the runs a slot chosen above",
        "고른 비교를 값마다 위에서 정한 횟수로 벤치마크합니다",
    ),
    "sweep.run": ("Run the sweep", "훑어보기 시작"),
    "sweep.progress": ("{0} = {1} ({2} of {3})", "{0} = {1} ({3}개 중 {2}번째)"),
    "prompt_tokens": ("Prompt tokens", "프롬프트 토큰 수"),
}
