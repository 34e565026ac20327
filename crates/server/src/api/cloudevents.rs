//! CloudEvents 1.0 over HTTP, structured and binary: the subject is the instance, the type is the name of the event, and source and id
//! are its key, so that repeated deliveries have no effect.

use super::keyed::send_once;
use super::operate::{Act, Answer, Ids, accepted};
use crate::app::Shared;
use crate::problem::{Code, Problem};
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The media type of a structured event.
pub(crate) const STRUCTURED: &str = "application/cloudevents+json";

/// The longest id or source in the reason of the audit.
const SHOWN: usize = 100;

/// The attributes that the server uses, and the data as text.
#[derive(Debug, PartialEq)]
pub(super) struct CloudEvent {
    id: String,
    source: String,
    kind: String,
    subject: String,
    data: String,
}

/// A structured event. Other attributes and extensions are ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = CloudEventBody)]
pub(crate) struct Structured {
    /// 1.0
    specversion: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    source: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    subject: String,
    datacontenttype: Option<String>,
    /// Any JSON value.
    data: Option<Value>,
    /// Not supported.
    data_base64: Option<Value>,
}

impl CloudEvent {
    fn of(headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let event = match headers.get("ce-specversion") {
            _ if kind == STRUCTURED => Self::structured(body)?,
            // A page of another site cannot send this header without asking the server.
            Some(_) => Self::binary(headers, body)?,
            None => {
                return Err(Problem::new(
                    Code::MEDIA,
                    format!(
                        "send {STRUCTURED}, or the attributes of the event as headers: ce-specversion, ce-id, ce-source, ce-type, ce-subject"
                    ),
                ));
            }
        };
        let required = [
            ("id", &event.id),
            ("source", &event.source),
            ("type", &event.kind),
            ("subject", &event.subject),
        ];
        let missing = required.into_iter().find(|(_, value)| value.is_empty()).map(|(name, _)| name);
        match missing {
            Some("subject") => {
                Err(Problem::invalid("the CloudEvent has no subject: the subject is the id of the instance"))
            }
            Some(name) => Err(Problem::invalid(format!("the CloudEvent has no {name}"))),
            None => Ok(event),
        }
    }

    fn structured(body: &[u8]) -> Result<Self, Problem> {
        // The text of the error may quote the body.
        let event: Structured = serde_json::from_slice(body).map_err(|_| {
            Problem::invalid("the body is no CloudEvent: it is not JSON, or an attribute is no text")
        })?;
        checked_version(&event.specversion)?;
        if event.data_base64.is_some() {
            return Err(Problem::invalid("data_base64 is not supported: send the data as JSON or text"));
        }
        let is_json = event.datacontenttype.as_deref().is_none_or(is_json);
        let data = match event.data {
            None => String::new(),
            Some(Value::String(text)) if !is_json => text,
            Some(data) => data.to_string(),
        };
        Ok(Self { id: event.id, source: event.source, kind: event.kind, subject: event.subject, data })
    }

    fn binary(headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        let attribute = |name: &str| -> Result<String, Problem> {
            let Some(value) = headers.get(name) else { return Ok(String::new()) };
            let text = value.to_str().ok().and_then(|text| percent_decode_str(text).decode_utf8().ok());
            let text =
                text.ok_or_else(|| Problem::invalid(format!("{name} is not percent-encoded UTF-8")))?;
            Ok(text.into_owned())
        };
        checked_version(&attribute("ce-specversion")?)?;
        let data = std::str::from_utf8(body);
        let data =
            data.map_err(|_| Problem::invalid("the data is not UTF-8: binary data is not supported"))?;
        Ok(Self {
            id: attribute("ce-id")?,
            source: attribute("ce-source")?,
            kind: attribute("ce-type")?,
            subject: attribute("ce-subject")?,
            data: data.to_string(),
        })
    }

    /// Source and id identify an event. An id in a header has no line break, so that no header Idempotency-Key is equal to a key.
    fn key(&self) -> String {
        format!("{}\n{}", self.source, self.id)
    }
}

fn checked_version(version: &str) -> Result<(), Problem> {
    match version {
        "1.0" => Ok(()),
        other => {
            Err(Problem::invalid(format!("the specversion of the CloudEvent is '{other:.20}', not 1.0")))
        }
    }
}

fn is_json(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.ends_with("/json") || kind.ends_with("+json")
}

pub(super) async fn receive(State(app): State<Shared>, (caller, id): Ids, request: Request) -> Answer {
    let headers = request.headers().clone();
    let read = tokio::time::timeout(app.options.body_timeout, Bytes::from_request(request, &app)).await;
    let read =
        read.map_err(|_| Problem::new(Code::SLOW, "the body of the request did not arrive in time"))?;
    let body = read.map_err(|error| Problem::of_status(error.status()))?;
    let event = CloudEvent::of(&headers, &body)?;
    let reason = format!("CloudEvent {:.SHOWN$} of {:.SHOWN$}", event.id, event.source);
    let act = Act::new(&app, (&caller, &id), "instance.event", &event.subject, &reason)?;
    let key = event.key();
    let sent =
        app.client.raise_event_once(event.subject.as_str(), event.kind.as_str(), event.data.as_str(), &key);
    let (stored, audited) = send_once(&act, &event.subject, sent).await?;
    Ok(accepted(event.subject.clone(), stored, audited))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn structured(body: &str) -> Result<CloudEvent, String> {
        let kind = headers(&[("content-type", "application/cloudevents+json; charset=utf-8")]);
        CloudEvent::of(&kind, body.as_bytes()).map_err(|problem| problem.detail)
    }

    const ATTRIBUTES: &str =
        r#""specversion":"1.0","id":"1","source":"/shop","type":"approval","subject":"order-1""#;

    #[test]
    fn structured_data_is_json_text_unless_its_type_is_another() {
        for (data, expected) in [
            ("", ""),
            (r#","data":{"n":9007199254740993}"#, r#"{"n":9007199254740993}"#),
            (r#","data":"yes""#, "\"yes\""),
            (r#","data":"yes","datacontenttype":"text/plain""#, "yes"),
            (r#","data":"yes","datacontenttype":"application/json; charset=utf-8""#, "\"yes\""),
            (r#","data":null,"extension":1"#, ""),
        ] {
            let event = structured(&format!("{{{ATTRIBUTES}{data}}}")).unwrap();
            assert_eq!(event.data, expected, "{data}");
            assert_eq!((event.subject.as_str(), event.kind.as_str()), ("order-1", "approval"));
            assert_eq!(event.key(), "/shop\n1");
        }
    }

    #[test]
    fn binary_attributes_are_percent_decoded() {
        let attributes = headers(&[
            ("content-type", "application/json"),
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "/shop"),
            ("ce-type", "approval"),
            ("ce-subject", "order%20%C3%A4"),
        ]);
        let event = CloudEvent::of(&attributes, br#"{"a":1}"#).unwrap();
        assert_eq!((event.subject.as_str(), event.data.as_str()), ("order \u{e4}", r#"{"a":1}"#));
        assert!(CloudEvent::of(&attributes, &[0xff]).unwrap_err().detail.contains("UTF-8"));
    }

    #[test]
    fn incomplete_events_are_refused_without_their_data() {
        for (body, part) in [
            ("secret", "no CloudEvent"),
            (r#"{"id":"1"}"#, "no CloudEvent"),
            (r#"{"specversion":"0.3","id":"1"}"#, "not 1.0"),
            (r#"{"specversion":"1.0","source":"s","type":"t","subject":"i","data":"secret"}"#, "no id"),
            (r#"{"specversion":"1.0","id":"1","type":"t","subject":"i"}"#, "no source"),
            (r#"{"specversion":"1.0","id":"1","source":"s","subject":"i"}"#, "no type"),
            (
                r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#,
                "the subject is the id of the instance",
            ),
        ] {
            let refused = structured(body).unwrap_err();
            assert!(refused.contains(part) && !refused.contains("secret"), "{body}: {refused}");
        }
        let base64 = structured(&format!(r#"{{{ATTRIBUTES},"data_base64":"AA=="}}"#)).unwrap_err();
        assert!(base64.contains("not supported"), "{base64}");
        let plain = CloudEvent::of(&headers(&[("content-type", "text/plain")]), b"{}").unwrap_err();
        assert_eq!(plain.code, Code::MEDIA);
    }
}
